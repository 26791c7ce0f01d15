// Records the qlog trace of one connection, and saves it as a file. The server records while this reads.

import { by, bytes, write } from "./words.js";

// The page keeps a trace in memory until it is saved.
const MOST = 64 * 1024 * 1024;
const NEWLINE = 10;

export class Recorder {
  // `request` fetches a path with the token.
  constructor(request) {
    this.request = request;
    this.id = null;
    this.stopper = null;
    by("watch-trace").addEventListener("click", () => this.toggle());
  }

  // Chooses the connection. A trace of another one ends, and is saved.
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
          if (size >= MOST) { reason = "it is as large as one of the page may be"; break; }
        }
      } else {
        reason = (await response.text()).trim();
      }
    } catch {
      if (!stopper.signal.aborted) reason = "the server is unreachable";
    }
    // The server ends its trace with the reader.
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

// Saves the whole records: the last one may be cut.
function save(parts, name) {
  let last = parts.length - 1;
  while (last > 0 && !parts[last].includes(NEWLINE)) last -= 1;
  const whole = [...parts.slice(0, last), parts[last].subarray(0, parts[last].lastIndexOf(NEWLINE) + 1)];
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(whole, { type: "application/qlog+json-seq" }));
  link.download = name;
  link.click();
  // The browser reads it after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
