"""Compares the answers of one program behind several servers, field by field.

compare.py PROGRAM WORK FILES DIFFERENCES
"""

import asyncio
import gzip
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time

import h2.config
import h2.connection
import h2.events
import websockets
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage

JSON = {"content-type": "application/json"}
FORM = {"content-type": "multipart/form-data; boundary=x"}

# Name, method, target, fields, content.
REQUESTS = [
    ("hello", "GET", "/", {}, None),
    ("head", "HEAD", "/", {}, None),
    ("missing", "GET", "/missing", {}, None),
    ("method", "DELETE", "/", {}, None),
    ("own method", "BREW", "/", {}, None),
    ("connect info", "GET", "/connect", {}, None),
    ("client ip", "GET", "/client", {"x-forwarded-for": "192.0.2.1"}, None),
    ("path", "GET", "/item/with%20space", {}, None),
    ("query", "GET", "/query?b=2&a=%C3%BC", {}, None),
    ("bad query", "GET", "/query?a=%FF", {}, None),
    ("json", "GET", "/json", {}, None),
    ("echo", "POST", "/echo", {"content-type": "text/plain"}, b"there and back"),
    ("echo of nothing", "POST", "/echo", {}, b""),
    ("too large", "POST", "/echo", {}, b"x" * 1001),
    ("compressed", "GET", "/large", {"accept-encoding": "gzip"}, None),
    ("brotli", "GET", "/large", {"accept-encoding": "br, gzip;q=0.5"}, None),
    ("identity", "GET", "/large", {"accept-encoding": "identity"}, None),
    ("file", "GET", "/files/text.txt", {}, None),
    ("compressed file", "GET", "/files/text.txt", {"accept-encoding": "gzip"}, None),
    ("range", "GET", "/files/text.txt", {"range": "bytes=5-9"}, None),
    ("bad range", "GET", "/files/text.txt", {"range": "bytes=99999-"}, None),
    ("head of a file", "HEAD", "/files/text.txt", {}, None),
    ("index", "GET", "/files/", {}, None),
    ("directory", "GET", "/files", {}, None),
    ("traversal", "GET", "/files/..%2f..%2fCargo.toml", {}, None),
    ("fresh file", "GET", "/files/text.txt", {"if-modified-since": "Fri, 01 Jan 2100 00:00:00 GMT"}, None),
    ("events", "GET", "/events", {"accept": "text/event-stream"}, None),
    ("preflight", "OPTIONS", "/echo", {"origin": "https://a.example", "access-control-request-method": "POST"}, None),
    ("cross-origin", "GET", "/json", {"origin": "https://a.example"}, None),
    ("request id", "GET", "/", {"x-request-id": "from-the-client"}, None),
    ("time limit", "GET", "/slow", {}, None),
    ("time limit of tower", "GET", "/shed", {}, None),
    ("not acceptable", "GET", "/private", {"accept": "text/html"}, None),
    ("acceptable", "GET", "/private", {"accept": "application/json"}, None),
    ("limited 1", "GET", "/limited", {}, None),
    ("limited 2", "GET", "/limited", {}, None),
    ("limited 3", "GET", "/limited", {}, None),
    ("caught panic", "GET", "/caught", {}, None),
    ("panic", "GET", "/panics", {}, None),
    ("late panic", "GET", "/panics-late", {}, None),
    ("panic in the content", "GET", "/content-panics", {}, None),
    ("no content", "GET", "/empty", {}, None),
    ("teapot", "GET", "/teapot", {}, None),
    ("no key", "GET", "/keys/a", {}, None),
    ("new key", "PUT", "/keys/a", {}, b"first\x00\xff"),
    ("old key", "PUT", "/keys/a", {}, b"second\x00\xff"),
    ("key", "GET", "/keys/a", {}, None),
    ("keys", "GET", "/keys", {}, None),
    ("removed key", "DELETE", "/keys/a", {}, None),
    ("keys after it", "GET", "/keys", {}, None),
    ("task", "POST", "/tasks", JSON, b'{"text": "read"}'),
    ("second task", "POST", "/tasks", JSON, b'{"text": "write"}'),
    ("task of another type", "POST", "/tasks", {"content-type": "text/plain"}, b'{"text": "read"}'),
    ("task of bad JSON", "POST", "/tasks", JSON, b'{"text": '),
    ("task without a text", "POST", "/tasks", JSON, b"{}"),
    ("changed task", "PATCH", "/tasks/1", JSON, b'{"is_done": true}'),
    ("tasks", "GET", "/tasks?skip=1&take=5", {}, None),
    ("bad page", "GET", "/tasks?skip=many", {}, None),
    ("bad task", "GET", "/tasks/one", {}, None),
    ("removed task", "DELETE", "/tasks/1", {}, None),
    ("removed task again", "DELETE", "/tasks/1", {}, None),
    ("form", "POST", "/form", FORM, b"--x\r\ncontent-disposition: form-data; name=a\r\n\r\n1234\r\n--x--\r\n"),
    ("form that ends early", "POST", "/form", FORM, b"--x\r\ncontent-disposition: form-data; name=a\r\n\r\n1234"),
    ("new session", "GET", "/visits", {}, None),
    ("unknown session", "GET", "/visits", {"cookie": "a=b; id=AAAAAAAAAAAAAAAAAAAAAA"}, None),
    ("socket without an upgrade", "GET", "/echo-socket", {}, None),
]

# Fields that differ between any two answers, or belong to the connection.
IGNORED = {"date", "connection", "keep-alive", "transfer-encoding", "alt-svc"}
UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
SESSION = re.compile(r"^id=[\w-]{22};")
ABORTED = "aborted"


def normal(status, fields, content):
    """Returns an answer without what may differ between two of them."""
    seen = {}
    for name, value in fields:
        name = name.lower()
        if name in IGNORED:
            continue
        if name == "x-request-id" and UUID.match(value):
            value = "a UUID"
        if name == "set-cookie":
            value = SESSION.sub("id=a session;", value)
        seen.setdefault(name, []).append(value)
    # Where compressed content has its flushes depends on the times at which it is read.
    if seen.get("content-encoding") == ["gzip"] and content:
        seen.pop("content-length", None)
        content = gzip.decompress(content)
    # A length is redundant where the version of HTTP frames content in another way.
    if seen.get("content-length") == [str(len(content))]:
        del seen["content-length"]
    return {"status": status, **{name: ", ".join(sorted(of)) for name, of in seen.items()}, "content": content}


def with_curl(version, port, scheme, request):
    """Sends a request with curl. Returns its answer, or ABORTED."""
    _, method, target, fields, content = request
    command = ["curl", "-s", "-k", "-i", "--max-time", "10", "--path-as-is", version]
    command += ["-I"] if method == "HEAD" else ["-X", method]
    for name, value in fields.items():
        command += ["-H", f"{name}: {value}"]
    if content is not None:
        command += ["--data-binary", "@-", "-H", "expect:"]
        if "content-type" not in fields:
            command += ["-H", "content-type:"]
    command += ["-H", "accept:"] if "accept" not in fields else []
    command += ["-H", "user-agent: witness", f"{scheme}://localhost:{port}{target}"]
    ran = subprocess.run(command, input=content, stdout=subprocess.PIPE, check=False)
    if ran.returncode != 0:
        return ABORTED
    head, _, body = ran.stdout.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    pairs = [line.split(": ", 1) for line in lines[1:] if ": " in line]
    return normal(int(lines[0].split(" ")[1]), pairs, body)


class Http3(H3Connection):
    """HTTP/3 of aioquic, which ends the connection at a HEAD whose answer has a length (RFC 9110 §8.6 allows it)."""

    def __init__(self, quic):
        super().__init__(quic)
        self.heads = set()

    def _check_content_length(self, stream):
        if stream.stream_id not in self.heads:
            super()._check_content_length(stream)


class Client(QuicConnectionProtocol):
    """A client of HTTP/3."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = Http3(self._quic)
        self.answers = {}
        self.waiting = {}

    async def send(self, request, authority):
        _, method, target, fields, content = request
        stream = self._quic.get_next_available_stream_id()
        head = [
            (b":method", method.encode()),
            (b":scheme", b"https"),
            (b":authority", authority.encode()),
            (b":path", target.encode()),
            (b"user-agent", b"witness"),
        ]
        head += [(name.encode(), value.encode()) for name, value in fields.items()]
        if content is not None:
            head.append((b"content-length", str(len(content)).encode()))
        if method == "HEAD":
            self.http.heads.add(stream)
        self.answers[stream] = ([], bytearray())
        self.waiting[stream] = asyncio.get_running_loop().create_future()
        self.http.send_headers(stream, head, end_stream=not content)
        if content:
            self.http.send_data(stream, content, end_stream=True)
        self.transmit()
        try:
            return await asyncio.wait_for(self.waiting[stream], 10)
        except asyncio.TimeoutError:
            fields, content = self.answers[stream]
            return f"no end of the answer within 10 s ({len(fields)} fields, {len(content)} bytes of content)"

    def quic_event_received(self, event):
        if isinstance(event, StreamReset):
            self.finish(event.stream_id, ABORTED)
        if isinstance(event, ConnectionTerminated):
            for stream in list(self.waiting):
                self.finish(stream, "the connection ended: " + event.reason_phrase)
        for of in self.http.handle_event(event):
            if not isinstance(of, (HeadersReceived, DataReceived)) or of.stream_id not in self.answers:
                continue
            fields, content = self.answers[of.stream_id]
            if isinstance(of, HeadersReceived):
                fields += [(name.decode(), value.decode("latin-1")) for name, value in of.headers]
            else:
                content += of.data
            if of.stream_ended:
                status = int(dict(fields)[":status"])
                pairs = [(name, value) for name, value in fields if not name.startswith(":")]
                self.finish(of.stream_id, normal(status, pairs, bytes(content)))

    def finish(self, stream, answer):
        waiting = self.waiting.pop(stream, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)


async def over_http3(port):
    """Sends all requests on one connection of HTTP/3."""
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name="localhost")
    configuration.verify_mode = ssl.CERT_NONE
    async with connect("127.0.0.1", port, configuration=configuration, create_protocol=Client) as client:
        return {request[0]: await client.send(request, f"localhost:{port}") for request in REQUESTS}


class Server:
    """The program behind one server."""

    def __init__(self, name, program, work, files):
        self.name = name
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        certificate, key = (os.path.join(work, it) for it in ("cert.pem", "key.pem"))
        self.log = open(os.path.join(work, f"{name}.log"), "wb")
        command = [program, name, f"127.0.0.1:{self.port}", certificate, key, files]
        self.process = subprocess.Popen(command, stderr=self.log)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"{name} does not listen")

    def end(self):
        """Ends the server. Returns what it has logged."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        self.log.close()
        with open(self.log.name, encoding="utf-8", errors="replace") as log:
            return log.read()


async def over_websocket(server):
    """Returns the answers to messages over WebSocket, and how it was closed."""
    tls = None
    if server.name != "axum":
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    url = f"{'ws' if tls is None else 'wss'}://localhost:{server.port}/echo-socket"
    async with websockets.connect(url, ssl=tls, max_size=None, open_timeout=10) as client:
        answers = []
        for message in ["text", b"\x00\xff", "", "x" * 300_000]:
            await client.send(message)
            answers.append(await asyncio.wait_for(client.recv(), 10))
        await (await client.ping())
        await client.close(1000, "done")
        return {"status": 101, "answers": answers, "code": client.close_code}


class SocketOverHttp2:
    """A WebSocket on a stream of HTTP/2 (RFC 8441)."""

    def __init__(self, port):
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        tls.set_alpn_protocols(["h2"])
        self.tcp = tls.wrap_socket(socket.create_connection(("127.0.0.1", port), 10), server_hostname="localhost")
        self.http = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.socket = Connection(ConnectionType.CLIENT)
        self.status, self.unsent, self.ended = None, b"", False
        self.http.initiate_connection()
        self.flush()
        while not self.http.remote_settings.enable_connect_protocol:
            self.read()
        self.stream = self.http.get_next_available_stream_id()
        head = {":method": "CONNECT", ":protocol": "websocket", ":scheme": "https", ":path": "/echo-socket"}
        head |= {":authority": f"localhost:{port}", "sec-websocket-version": "13"}
        self.http.send_headers(self.stream, list(head.items()))
        self.flush()
        while self.status is None:
            self.read()

    def flush(self):
        while self.unsent:
            size = min(self.http.local_flow_control_window(self.stream), self.http.max_outbound_frame_size)
            if size == 0:
                break
            self.http.send_data(self.stream, self.unsent[:size])
            self.unsent = self.unsent[size:]
        self.tcp.sendall(self.http.data_to_send())

    def read(self):
        received = self.tcp.recv(65536)
        if not received:
            raise EOFError("the server closed the connection")
        for event in self.http.receive_data(received):
            if isinstance(event, h2.events.ResponseReceived):
                self.status = int(dict(event.headers)[":status"])
            elif isinstance(event, h2.events.DataReceived):
                self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                self.socket.receive_data(event.data)
            elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                self.ended = True
        self.flush()

    def send(self, event):
        self.unsent += self.socket.send(event)
        self.flush()

    def next(self):
        """Returns the next message, Pong or close as a whole."""
        whole = None
        while True:
            for event in self.socket.events():
                if isinstance(event, (TextMessage, BytesMessage)):
                    whole = event.data if whole is None else whole + event.data
                    if event.message_finished:
                        return whole
                else:
                    return event
            self.read()


def over_websocket_of_http2(server):
    """Returns the answers to messages over WebSocket on HTTP/2, and how it was closed, in the form of HTTP/1.1."""
    client = SocketOverHttp2(server.port)
    if client.status != 200:
        return {"status": client.status}
    answers = []
    for message in ["text", b"\x00\xff", "", "x" * 300_000]:
        client.send(TextMessage(message) if isinstance(message, str) else BytesMessage(message))
        answer = client.next()
        answers.append(answer if isinstance(answer, str) else bytes(answer))
    client.send(Ping(b"there"))
    pong = client.next()
    client.send(CloseConnection(1000, "done"))
    code = client.next().code
    while not client.ended:
        client.read()
    return {"status": 101, "answers": answers, "code": code, "pong": bytes(pong.payload) if isinstance(pong, Pong) else pong}


def by_curl(version, server):
    scheme = "http" if server.name == "axum" else "https"
    return {request[0]: with_curl(version, server.port, scheme, request) for request in REQUESTS}


def answers(name, versions, program, work, files):
    """Returns the answers of a server by version, with fresh limits for each, and the log of the last."""
    found, log, metrics = {}, "", b""
    for version in versions:
        server = Server(name, program, work, files)
        try:
            found[version] = asyncio.run(over_http3(server.port)) if version == "--http3" else by_curl(version, server)
            if version == "--http1.1":
                found[version]["websocket"] = asyncio.run(over_websocket(server))
            if version == "--http2":
                found[version]["websocket"] = over_websocket_of_http2(server)
            if name == "courser":
                metrics = with_curl("--http2", server.port, "https", ("", "GET", "/metrics", {}, None))["content"]
        finally:
            log = server.end()
    return found, log, metrics.decode()


def differences(of, reference):
    """Yields name, field, value and expected value of each difference."""
    for name in [name for name in of if name in reference]:
        one, other = of[name], reference[name]
        if isinstance(one, str) or isinstance(other, str):
            if one != other:
                short = [it if isinstance(it, str) else str(it["status"]) for it in (one, other)]
                yield name, "outcome", *short
            continue
        for field in sorted(one.keys() | other.keys()):
            if one.get(field) != other.get(field):
                yield name, field, str(one.get(field))[:80], str(other.get(field))[:80]


def main():
    program, work, files, expected = sys.argv[1:]
    with open(expected, encoding="utf-8") as table:
        rows = [line.rstrip("\n").split("\t") for line in table if line.strip() and not line.startswith("#")]
    known = {(version, name, field): reason for version, name, field, reason in rows}
    reference, _, _ = answers("axum-server", ["--http1.1", "--http2"], program, work, files)
    found, log, metrics = answers("courser", ["--http1.1", "--http2", "--http3"], program, work, files)
    plain, _, _ = answers("axum", ["--http1.1"], program, work, files)
    pairs = [
        ("http/1.1", found["--http1.1"], reference["--http1.1"]),
        ("h2", found["--http2"], reference["--http2"]),
        ("h3", found["--http3"], reference["--http2"]),
        ("plain", found["--http1.1"], plain["--http1.1"]),
    ]
    failed, used = 0, set()
    for version in ["--http1.1", "--http2"]:
        echoed = found[version]["websocket"].get("answers", [])
        failed += len(echoed) != 4
        print(f"websocket over {version[2:]}: {len(echoed)} of 4 messages came back")
    for version, of, other in pairs:
        count = 0
        for name, field, value, wanted in differences(of, other):
            key = next((it for it in ((version, name, field), ("*", name, field)) if it in known), None)
            used.add(key)
            failed += key is None
            count += 1
            reason = known.get(key, "NOT EXPECTED")
            print(f"{version}\t{name}\t{field}: {value}, and {wanted}\t{reason}")
        print(f"{version}\t{len(of)} answers, {count} differences")
    for key in known.keys() - used:
        if known[key].startswith("sometimes"):
            continue
        failed += 1
        print(f"{key} is expected and does not occur")
    for text, where, what in [
        ("finished processing request", log, "the log of TraceLayer"),
        ("the service panicked during GET /panics from 127.0.0.1:", log, "the log of events"),
        ('courser_http_requests_total{protocol="h3",method="GET",code="429"} 1', metrics, "the metrics"),
        ('courser_http_requests_total{protocol="h3",method="other",code="405"} 1', metrics, "the metrics"),
        ("courser_handler_panics_total 3", metrics, "the metrics"),
    ]:
        is_there = text in where
        failed += not is_there
        print(f"{what}: {text}: {'there' if is_there else 'MISSING'}")
    sys.exit(1 if failed else 0)


main()
