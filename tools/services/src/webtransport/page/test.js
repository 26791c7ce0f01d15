// Tests WebTransport between this browser and the server of the page. Each test has a row with its result.

const MEGABYTE = 1e6;
const BULK = 10 * MEGABYTE;
const CHUNK = 65536;
const STREAMS = 100;
const DATAGRAMS = 100;
const PATIENCE = 20000;

const by = id => document.getElementById(id);
const clock = () => performance.now();
const millis = time => time < 10 ? time.toFixed(1) + " ms" : time.toFixed(0) + " ms";

/** Thrown by a test for which this browser lacks a part of the interface. */
class Lacking extends Error {}

function check(condition, text) {
  if (!condition) throw new Error(text);
}

/** Limits a promise in time, so that each test ends. */
function within(promise, what, limit = PATIENCE) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(what + " took more than " + limit / 1000 + " s")), limit);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function describe(error) {
  const parts = [error.name && error.name !== "Error" ? error.name + ": " : "", error.message || String(error)];
  return parts.join("");
}

/** The bytes of a stream, which depend on its number. */
function pattern(length, seed) {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at++) bytes[at] = at * 31 + seed * 7 + (at >> 8);
  return bytes;
}

async function readAll(readable) {
  const reader = readable.getReader();
  const chunks = [];
  let length = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    chunks.push(value);
    length += value.length;
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) { all.set(chunk, at); at += chunk.length; }
  return all;
}

async function writeAll(writable, bytes) {
  const writer = writable.getWriter();
  for (let at = 0; at < bytes.length; at += CHUNK) {
    await writer.ready;
    // A rejection reaches the close below.
    writer.write(bytes.subarray(at, at + CHUNK)).catch(() => {});
  }
  await writer.close();
}

function equal(one, other) {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}

/** The error of a stream with a code of the application. Browsers differ in the arguments. */
function streamError(code) {
  if (typeof WebTransportError === "undefined") throw new Lacking("no WebTransportError");
  for (const make of [
    () => new WebTransportError("test", { source: "stream", streamErrorCode: code }),
    () => new WebTransportError({ message: "test", streamErrorCode: code }),
  ]) {
    try {
      const error = make();
      if (error.streamErrorCode === code) return error;
    } catch { /* the other form */ }
  }
  throw new Lacking("WebTransportError takes no code");
}

/** False once a code was missing: Firefox shows none, and does not tell a writer that its reader has stopped. */
let showsCodes = true;

/** Waits for the rejection of a promise, and compares its code. */
async function expectCode(promise, code, what) {
  let error;
  try {
    await within(promise, what, 5000);
  } catch (reason) {
    error = reason;
  }
  check(error, what + " did not arrive");
  if (error.streamErrorCode === undefined || error.streamErrorCode === null) {
    check(!/took more than/.test(error.message), error.message);
    throw new Lacking(what + " arrived, but this browser does not show its code");
  }
  check(error.streamErrorCode === code, "code " + error.streamErrorCode + " instead of " + code);
}

/** Repeats a test of a code: Chromium now and then notices the end of a stream before its code. */
async function expectCodeInOneOf(attempts, attempt) {
  if (!showsCodes) throw new Lacking("this browser does not show codes");
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Lacking)) throw error;
      showsCodes = --attempts > 0;
      if (!showsCodes) throw error;
    }
  }
}

let facts = {};

function open(query = "", options = {}) {
  const url = new URL(facts.path + query, location.href);
  if (facts.certificate_sha256) {
    options.serverCertificateHashes = [{ algorithm: "sha-256", value: new Uint8Array(facts.certificate_sha256) }];
  }
  const transport = new WebTransport(url, options);
  // Each test looks at the end that it expects.
  transport.closed.catch(() => {});
  return transport;
}

async function bidirectional(transport, seed, length) {
  const stream = await transport.createBidirectionalStream();
  const sent = pattern(length, seed);
  const [received] = await Promise.all([readAll(stream.readable), writeAll(stream.writable, sent)]);
  check(equal(sent, received), "stream " + seed + ": sent " + length + " bytes, and other " + received.length + " came back");
}

/** Sends on unidirectional streams, and receives their echoes, in any order. */
async function unidirectional(transport, lengths) {
  const sent = lengths.map((length, seed) => pattern(length, seed));
  const incoming = transport.incomingUnidirectionalStreams.getReader();
  const receive = async () => {
    const found = [];
    for (let count = 0; count < lengths.length; count++) {
      const { value, done } = await incoming.read();
      check(!done, "the session has ended");
      found.push(readAll(value));
    }
    return Promise.all(found);
  };
  const send = Promise.all(sent.map(async bytes => writeAll(await transport.createUnidirectionalStream(), bytes)));
  const [received] = await Promise.all([receive(), send]);
  incoming.releaseLock();
  const left = received.slice();
  for (const bytes of sent) {
    const at = left.findIndex(other => equal(bytes, other));
    check(at >= 0, "a stream of " + bytes.length + " bytes did not come back");
    left.splice(at, 1);
  }
}

const several = (count, make) => Promise.all(Array.from({ length: count }, (_, number) => make(number)));

async function timed(work) {
  const began = clock();
  await work();
  return clock() - began;
}

let session;

const TESTS = [
  ["session", async () => {
    const began = clock();
    session = open("", { protocols: ["courser-echo.1", "courser-echo.0"] });
    await session.ready;
    const how = facts.certificate_sha256 ? "certificate trusted by its hash" : "certificate trusted by the browser";
    return millis(clock() - began) + ", " + how;
  }],
  ["application protocol", async () => {
    if (!("protocol" in session)) throw new Lacking("this browser has no 'protocol'");
    check(session.protocol === "courser-echo.1", "'" + session.protocol + "' instead of 'courser-echo.1'");
    return session.protocol;
  }],
  ["one bidirectional stream", async () => millis(await timed(() => bidirectional(session, 1, 1000)))],
  ["100 bidirectional streams at once", async () =>
    millis(await timed(() => several(STREAMS, number => bidirectional(session, number, 100 * number))))],
  ["one unidirectional stream, and one back", async () => millis(await timed(() => unidirectional(session, [1000])))],
  ["100 unidirectional streams at once, and 100 back", async () => {
    const lengths = Array.from({ length: STREAMS }, (_, number) => 10 + 100 * number);
    return millis(await timed(() => unidirectional(session, lengths)));
  }],
  ["100 bidirectional streams of the server", async () => {
    const other = open("?open=" + STREAMS);
    await other.ready;
    const began = clock();
    const incoming = other.incomingBidirectionalStreams.getReader();
    const found = [];
    for (let count = 0; count < STREAMS; count++) {
      const { value, done } = await incoming.read();
      check(!done, "the session has ended after " + count + " streams");
      found.push((async () => {
        const answer = new TextEncoder().encode("answer");
        const [text] = await Promise.all([readAll(value.readable), writeAll(value.writable, answer)]);
        return new TextDecoder().decode(text);
      })());
    }
    const texts = (await Promise.all(found)).sort();
    const expected = Array.from({ length: STREAMS }, (_, at) => "stream " + at + " of " + STREAMS + "\nanswer").sort();
    check(texts.every((text, at) => text === expected[at]), "unexpected content: " + texts[0]);
    const took = clock() - began;
    other.close();
    return millis(took);
  }],
  ["10 MB each way on one stream", async () => {
    const took = await timed(() => bidirectional(session, 3, BULK));
    return millis(took) + ", " + (8 * BULK / took / 1000).toFixed(0) + " Mbit/s each way";
  }],
  ["10 MB each way on unidirectional streams", async () => {
    const took = await timed(() => unidirectional(session, [BULK]));
    return millis(took) + ", " + (8 * BULK / took / 1000).toFixed(0) + " Mbit/s each way";
  }],
  ["datagrams", async () => {
    const most = session.datagrams.maxDatagramSize;
    const writable = session.datagrams.writable ?? session.datagrams.createWritable();
    const writer = writable.getWriter(), reader = session.datagrams.readable.getReader();
    const sentAt = [], times = [];
    const receive = (async () => {
      while (times.length < DATAGRAMS) {
        const { value, done } = await reader.read();
        if (done) return;
        const number = value[0];
        const isWhole = equal(value, datagram(number, most));
        check(isWhole, "a datagram has come back with other bytes");
        times.push(clock() - sentAt[number]);
      }
    })();
    for (let number = 0; number < DATAGRAMS; number++) {
      sentAt[number] = clock();
      await writer.write(datagram(number, most));
      await new Promise(done => setTimeout(done, 1));
    }
    await Promise.race([receive, new Promise(done => setTimeout(done, 1000))]);
    writer.releaseLock();
    reader.releaseLock();
    receive.catch(() => {});
    check(times.length >= DATAGRAMS * 0.9, times.length + " of " + DATAGRAMS + " have come back");
    times.sort((a, b) => a - b);
    return times.length + " of " + DATAGRAMS + " back, up to " + most + " bytes, median " + millis(times[times.length >> 1]);
  }],
  ["reset with a code, and one back", () => expectCodeInOneOf(3, async () => {
    const stream = await session.createBidirectionalStream();
    const writer = stream.writable.getWriter(), reader = stream.readable.getReader();
    await writer.write(new Uint8Array([1]));
    await reader.read();
    const error = streamError(42);
    writer.abort(error).catch(() => {});
    await expectCode(reader.read(), 42, "the reset");
    return "code 42";
  })],
  ["stop with a code, and one back", () => expectCodeInOneOf(3, async () => {
    const stream = await session.createBidirectionalStream();
    const writer = stream.writable.getWriter(), reader = stream.readable.getReader();
    await writer.write(new Uint8Array([1]));
    await reader.read();
    const error = streamError(43);
    const closed = writer.closed;
    reader.cancel(error).catch(() => {});
    await expectCode(closed, 43, "the stop");
    return "code 43";
  })],
  ["close by the server", async () => {
    const other = open("?close=4711&reason=so+long");
    const { closeCode, reason } = await within(other.closed, "the close");
    check(closeCode === 4711 && reason === "so long", "code " + closeCode + " '" + reason + "' instead of 4711 'so long'");
    return "code 4711, so long";
  }],
  ["close by the browser", async () => {
    session.close({ closeCode: 7, reason: "done" });
    await within(session.closed, "the close");
    return "code 7, done";
  }],
];

function datagram(number, most) {
  const length = Math.max(1, Math.min(most, 1 + number * 12));
  const bytes = pattern(length, number);
  bytes[0] = number;
  return bytes;
}

function row(name) {
  const line = document.createElement("tr");
  const cells = [name, "running", ""].map(text => {
    const cell = document.createElement("td");
    cell.textContent = text;
    line.append(cell);
    return cell;
  });
  by("rows").append(line);
  return (result, text) => {
    cells[1].textContent = cells[1].className = result;
    cells[2].textContent = text;
  };
}

function verdict(result, text) {
  by("verdict").textContent = text;
  by("verdict").className = document.body.dataset.result = result;
}

function missing() {
  if (!window.isSecureContext) return "The page is not a secure context: open it with https or at localhost.";
  if (!("WebTransport" in window)) return "This browser has no WebTransport. Chromium, Firefox and Safari from 26.4 have it.";
  return "";
}

async function run() {
  by("rows").replaceChildren();
  by("again").disabled = true;
  delete document.body.dataset.result;
  verdict("running", "running");
  delete document.body.dataset.result;
  showsCodes = true;
  const counts = { pass: 0, skip: 0, fail: 0 };
  let lost = false;
  for (const [name, test] of TESTS) {
    const show = row(name);
    let result = "pass", text;
    try {
      if (lost) throw new Lacking("no session");
      text = await within(test(), "the test", 2 * PATIENCE);
    } catch (error) {
      result = error instanceof Lacking ? "skip" : "fail";
      text = describe(error);
      if (name === "session") lost = true;
    }
    counts[result]++;
    show(result, text);
  }
  const words = counts.pass + " passed, " + counts.fail + " failed, " + counts.skip + " skipped";
  verdict(counts.fail ? "fail" : "pass", (counts.fail ? "failed: " : "passed: ") + words);
  by("again").disabled = false;
}

async function begin() {
  const reason = missing();
  if (reason) return verdict("fail", reason);
  try {
    facts = await (await fetch("/webtransport/facts.json", { cache: "no-store" })).json();
  } catch (error) {
    return verdict("fail", "The server does not answer: " + describe(error));
  }
  by("facts").textContent = "Sessions at " + new URL(facts.path, location.href);
  await run();
}

by("again").addEventListener("click", () => begin());
begin();
