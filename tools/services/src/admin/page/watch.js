// The live charts of one connection. The server takes samples only while the page requests them.

import { Chart, Strip } from "./charts.js";
import { bits, by, bytes, millis, time, whole, write } from "./words.js";

const PAUSE = 500;
const line = (name, className, value) => ({ name, className, value });

export class Watch {
  // `ask` fetches JSON, `onChange` is called with the ID of the watched connection, or null.
  constructor(ask, onChange) {
    this.ask = ask;
    this.onChange = onChange;
    this.id = null;
    this.run = 0;
    by("watch-close").addEventListener("click", () => this.close());
    // Nothing is requested while the page is hidden. The server may have restarted its samples since.
    document.addEventListener("visibilitychange", () => {
      this.last = 0;
      this.turn();
    });
  }

  get isOpen() {
    return this.id !== null;
  }

  open(id) {
    if (this.id === id) return;
    this.id = id;
    this.isOver = false;
    this.samples = [];
    this.last = 0;
    this.charts = [
      new Strip("limited by"),
      new Chart("window", [line("congestion window", "first", it => it.window), line("in flight", "second", it => it.in_flight)], bytes),
      new Chart("round-trip time", [line("smoothed", "first", it => it.rtt_ms), line("latest", "second", it => it.latest_rtt_ms),
        line("least", "third", it => it.min_rtt_ms)], millis),
      new Chart("rate", [line("sent", "first", it => it.sent_rate), line("received", "second", it => it.received_rate),
        line("delivered by the path", "third", it => it.delivery_rate)], bits),
      new Chart("packets lost", [line("in this minute", "bars", it => it.lost)], whole, true),
    ];
    by("charts").replaceChildren(...this.charts.map(chart => chart.figure));
    write(by("watch-title"), "Connection " + id);
    write(by("watch-facts"), "");
    by("watch").hidden = false;
    this.onChange(id);
    this.turn();
  }

  close() {
    if (!this.isOpen) return;
    this.id = null;
    this.turn();
    by("watch").hidden = true;
    this.onChange(null);
  }

  // Fetches the samples, and repeats this after a pause. Responses to earlier calls are discarded.
  async turn() {
    clearTimeout(this.timer);
    this.run += 1;
    if (!this.isOpen || this.isOver || document.hidden) return;
    const run = this.run, after = this.last;
    const { answer, reason } = await this.ask("/connections/" + this.id + "?after=" + after);
    if (this.run !== run) return;
    if (answer) this.show(answer, after);
    else write(by("watch-facts"), reason);
    // A closed connection stays on the page, but is not requested again.
    this.isOver = Boolean(answer?.closed);
    this.timer = setTimeout(() => this.turn(), PAUSE);
  }

  show(answer, after) {
    // The server keeps samples of one minute. If their numbers are lower than before, it has restarted from 1.
    const isNew = after === 0 || answer.last < after;
    this.samples = (isNew ? [] : this.samples).concat(answer.samples).slice(-answer.most);
    this.last = answer.last < after ? 0 : answer.last;
    const it = answer.connection, facts = [it.client, it.name, it.protocol, answer.closed ? "closed" : it.state, time(it.seconds) + " old",
      whole(it.requests) + " requests", bytes(it.bytes_received) + " received", bytes(it.bytes_sent) + " sent"];
    if (it.quic) facts.push(it.quic.controller, "datagrams of " + it.quic.mtu + " bytes");
    if (it.cipher) facts.push(it.cipher);
    if (it.trace) facts.push("trace " + it.trace);
    write(by("watch-facts"), facts.filter(fact => fact).join(" \u00b7 "));
    for (const chart of this.charts) chart.show(this.samples);
  }
}
