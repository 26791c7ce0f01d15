// Charts of one connection as SVG, from its samples.

import { limitName, make, percent, shape, write } from "./words.js";

const WIDTH = 600;
const HEIGHT = 80;
const SPAN = 60000;

// Lines over the last minute. A line has a name, a class, and a function from a sample to a number or null.
export class Chart {
  constructor(title, lines, format, isBars) {
    this.lines = lines;
    this.format = format;
    this.isBars = isBars;
    this.title = title;
    this.figure = make("figure");
    this.svg = shape("svg", { viewBox: "0 0 " + WIDTH + " " + HEIGHT, preserveAspectRatio: "none", role: "img" });
    this.shapes = lines.map(line => shape(isBars ? "path" : "polyline", { class: (isBars ? "bars" : "line") + " " + line.className }));
    this.svg.append(...this.shapes);
    const legend = make("figcaption", undefined, "legend");
    legend.append(make("b", title));
    this.values = lines.map(line => {
      const item = make("span"), value = make("span");
      item.append(make("i", undefined, "key " + line.className), make("span", line.name + " "), value);
      legend.append(item);
      return value;
    });
    this.figure.append(legend, this.svg);
  }

  show(samples) {
    const end = samples.length ? samples[samples.length - 1].ms : 0;
    const all = this.lines.map(line => samples.map(line.value));
    const most = Math.max(...all.map(values => values.reduce((top, it) => Math.max(top, it ?? 0), 0)), 1e-9);
    const x = sample => (WIDTH * (1 - (end - sample.ms) / SPAN)).toFixed(1);
    const y = value => (HEIGHT - 2 - (HEIGHT - 6) * value / most).toFixed(1);
    all.forEach((values, index) => {
      if (this.isBars) {
        const bars = values.map((value, at) => value ? "M" + x(samples[at]) + " " + HEIGHT + "h2V" + y(value) + "h-2z" : "");
        this.shapes[index].setAttribute("d", bars.join(""));
      } else {
        const points = values.map((value, at) => value === null || value === undefined ? "" : x(samples[at]) + "," + y(value));
        this.shapes[index].setAttribute("points", points.filter(point => point).join(" "));
      }
      const known = values.filter(value => value !== null && value !== undefined);
      const sum = known.reduce((total, value) => total + value, 0);
      const shown = this.isBars ? sum : known[known.length - 1];
      write(this.values[index], known.length ? this.format(shown) : "unknown");
    });
    this.svg.setAttribute("aria-label", this.title + ": " + this.lines.map((line, index) => line.name + " " + this.values[index].textContent).join(", "));
  }
}

// The limit in force over the last minute, as a strip of colours, with the share of each limit.
export class Strip {
  constructor(title) {
    this.title = title;
    this.figure = make("figure");
    this.svg = shape("svg", { viewBox: "0 0 " + WIDTH + " 10", preserveAspectRatio: "none", role: "img", class: "strip" });
    this.legend = make("figcaption", undefined, "legend");
    this.figure.append(this.legend, this.svg);
  }

  show(samples) {
    const end = samples.length ? samples[samples.length - 1].ms : 0;
    const runs = [], parts = new Map();
    let total = 0;
    for (const sample of samples) {
      if (!sample.limit) continue;
      total += sample.passed_ms;
      parts.set(sample.limit, (parts.get(sample.limit) ?? 0) + sample.passed_ms);
      const run = runs[runs.length - 1], from = sample.ms - sample.passed_ms;
      if (run && run.limit === sample.limit && from - run.to < 50) run.to = sample.ms;
      else runs.push({ limit: sample.limit, from, to: sample.ms });
    }
    const x = ms => WIDTH * (1 - (end - ms) / SPAN);
    this.svg.replaceChildren(...runs.map(run => shape("rect", {
      x: x(run.from).toFixed(1), width: Math.max(0.5, x(run.to) - x(run.from)).toFixed(1), y: 0, height: 10, class: run.limit,
    })));
    const sorted = [...parts].sort((one, other) => other[1] - one[1]);
    this.legend.replaceChildren(make("b", this.title), ...sorted.map(([limit, ms]) => {
      const item = make("span");
      item.append(make("i", undefined, "key " + limit), make("span", limitName(limit) + " " + percent(ms / total)));
      return item;
    }));
    const text = sorted.map(([limit, ms]) => limitName(limit) + " " + percent(ms / total)).join(", ");
    this.svg.setAttribute("aria-label", this.title + ": " + (text || "unknown"));
  }
}
