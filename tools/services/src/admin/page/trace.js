// Records the qlog trace of one connection, and saves it as a file. The server records while the response is read.

import { by, bytes, write } from "./words.js";

// Maximum size of a trace in bytes: the page keeps it in memory until it is saved.
const MAX_TRACE = 64 * 1024 * 1024;
const NEWLINE = 10;

export class Recorder {
  // `request` fetches a path with the token.
  constructor(request) {
    this.request = request;
    this.id = null;
    this.stopper = null;
    by("watch-trace").addEventListener("click", () => this.toggle());
  }

  // Selects the connection. The trace of another connection is stopped and saved.
  choose(id) {
    this.stop();
    this.id = id;
    write(by("trace-state"), "");
  }

  toggle() {
    if (this.stopper) this.stop();
    else if (this.id !== null) this.record(this.id);
  }

  stop() {
    this.stopper?.abort();
    this.showRunning(null);
  }

  showRunning(stopper) {
    this.stopper = stopper;
    write(by("trace-word"), stopper ? "Stop and save" : "Trace");
    by("watch-trace").setAttribute("aria-pressed", String(Boolean(stopper)));
  }

  async record(id) {
    const stopper = new AbortController(), parts = [], say = text => write(by("trace-state"), text);
    this.showRunning(stopper);
    let size = 0, reason = "";
    try {
      const response = await this.request("/qlog?connection=" + id, stopper.signal);
      if (response.ok) {
        const reader = response.body.getReader();
        for (;;) {
          const { done, value } = await reader.read();
          if (done) { reason = "the connection is closed"; break; }
          parts.push(value);
          size += value.length;
          say("trace: " + bytes(size));
          if (size >= MAX_TRACE) { reason = "it has reached the limit of 64 MiB"; break; }
        }
      } else {
        reason = (await response.text()).trim();
      }
    } catch {
      if (!stopper.signal.aborted) reason = "the server is unreachable";
    }
    // The server stops the trace when the response is cancelled.
    stopper.abort();
    if (this.stopper === stopper) this.showRunning(null);
    const name = "connection-" + id + ".sqlog", why = reason && ": " + reason;
    if (size) {
      save(parts, name);
      say("saved " + name + ", " + bytes(size) + why);
    } else {
      say("no trace" + why);
    }
  }
}

// Saves all complete records. The last one may be truncated.
function save(parts, name) {
  let last = parts.length - 1;
  while (last > 0 && !parts[last].includes(NEWLINE)) last -= 1;
  const whole = [...parts.slice(0, last), parts[last].subarray(0, parts[last].lastIndexOf(NEWLINE) + 1)];
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(whole, { type: "application/qlog+json-seq" }));
  link.download = name;
  link.click();
  // The browser reads the data after the click, so it is released later.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
