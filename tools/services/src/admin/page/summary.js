// The state of the server: tiles, requests per second, limits, failures, certificates, drain.

import { bits, by, bytes, count, make, percent, scaled, time, whole, write } from "./words.js";

const MAX_POINTS = 120;
const SOON = 14;
// Seconds without a response after which the series restarts, because its points would not be a second apart.
const GAP = 5;
let before = null;
let rates = [];

export function showState(text, isBad) {
  write(by("state"), text);
  by("state").className = isBad ? "bad" : "";
}

function tile(value, name) {
  const box = make("div", undefined, "tile");
  box.append(make("b", value), make("span", name));
  return box;
}

function traffic(now) {
  const at = performance.now() / 1000;
  const requests = now.protocols.reduce((all, one) => all + one.requests, 0);
  const passed = before ? Math.max(at - before.at, 0.001) : 1;
  const since = (value, last) => before ? Math.max(0, value - last) / passed : 0;
  const rate = since(requests, before?.requests);
  const into = since(now.bytes_received, before?.received);
  const out = since(now.bytes_sent, before?.sent);
  before = { at, requests, received: now.bytes_received, sent: now.bytes_sent };
  if (passed > GAP) rates = [];
  rates.push(rate);
  rates = rates.slice(-MAX_POINTS);
  const most = Math.max(1, ...rates);
  const start = MAX_POINTS - rates.length;
  by("rate").setAttribute("points", rates.map((value, index) => (start + index) + "," + (39 - 37 * value / most)).join(" "));
  write(by("peak"), ", peak " + count(Math.max(0, ...rates)));
  const lost = now.quic_packets_sent ? (100 * now.quic_packets_lost / now.quic_packets_sent).toFixed(2) + " %" : "0 %";
  const tiles = [tile(count(rate), "requests/s"), tile(bits(into), "received"), tile(bits(out), "sent"),
    tile(lost, "QUIC packets lost")];
  for (const one of now.protocols) {
    const all = scaled(one.requests, ["", "k", "M", "G"], 1000).trim();
    tiles.push(tile(one.connections_open + " / " + all, one.protocol + ": open / requests"));
  }
  tiles.push(tile(whole(now.handshakes_failed), "handshakes failed"));
  const refused = Object.values(now.refused).reduce((all, one) => all + one, 0);
  tiles.push(tile(whole(refused), "refused"));
  if (now.udp_dropped_datagrams) tiles.push(tile(whole(now.udp_dropped_datagrams), "datagrams dropped by the kernel"));
  by("tiles").replaceChildren(...tiles);
}

function drain(now) {
  by("drain").hidden = !now;
  if (!now) return;
  const gone = now.connections - Math.min(now.connections_open, now.connections);
  by("drain-bar").value = now.connections ? gone / now.connections : 1;
  const left = Math.max(0, now.deadline_seconds - now.seconds);
  write(by("drain-text"), "Draining: " + gone + " of " + now.connections + " connections have ended, "
    + now.requests_in_flight + " requests in progress, the rest is aborted in " + time(left));
}

function amount(limit, value) {
  return limit.unit === "bytes" ? bytes(value) : whole(value);
}

function limits(now) {
  by("limits").replaceChildren(...now.map(limit => {
    const item = make("li"), bar = make("meter");
    const text = limit.name + (limit.label ? " (" + limit.label + ")" : "");
    const full = amount(limit, limit.used) + " of " + amount(limit, limit.most);
    bar.max = 1; bar.low = 0.75; bar.high = 0.9; bar.optimum = 0; bar.value = limit.share;
    bar.setAttribute("aria-label", text);
    bar.title = full + ", " + percent(limit.share);
    const name = make("span", text, limit.share >= 0.9 ? "bad" : "");
    name.title = text;
    item.append(name, make("span", full, "dim"), bar);
    return item;
  }));
}

let counted = new Map();
function closes(now) {
  const ends = [...now.totals].sort((one, other) => other.count - one.count);
  const next = new Map();
  by("causes").replaceChildren(...ends.map(it => {
    const key = it.by + " " + it.cause, item = make("li");
    const more = counted.has(key) ? it.count - counted.get(key) : 0;
    next.set(key, it.count);
    item.append(make("span", it.cause + ", " + (it.by === "peer" ? "by the client" : "by the server")),
      make("span", whole(it.count) + (more > 0 ? " (+" + whole(more) + ")" : ""), more > 0 && !it.ordinary ? "bad" : "dim"));
    return item;
  }));
  counted = next;
  const shown = now.failures.map(it => {
    const item = make("li");
    const text = it.cause + (it.reason ? ": " + it.reason : "");
    const name = make("span", text);
    name.title = text;
    item.append(name, make("span", (it.client || "") + ", " + time(it.seconds_ago) + " ago", "dim"));
    return item;
  });
  by("failures").replaceChildren(...(shown.length ? shown : [make("li", "no failure so far", "dim")]));
}

function certificates(now) {
  by("certificates").replaceChildren(...now.map(it => {
    const item = make("li"), names = it.names.join(", "), days = Math.floor(it.days_left);
    const name = make("span", names);
    name.title = names;
    const left = it.days_left < 0 ? "expired" : days > 3650 ? "more than ten years" : days + " days left";
    item.append(name, make("span", left, it.days_left < SOON ? "bad" : "dim"));
    return item;
  }));
}

export function showSummary(now) {
  const state = now.draining ? "draining" : now.busy ? "busy" : now.ready ? "ready" : "not ready";
  showState(state, !now.ready);
  write(by("what"), now.what);
  write(by("uptime"), "up " + time(now.uptime_seconds) + ", version " + now.version);
  traffic(now);
  drain(now.drain);
  limits(now.limits);
  closes(now.closes);
  certificates(now.certificates);
}
