"""aioquic's side: GET /bytes/N is answered with the first N bytes of the endless repetition of
BLOCK, POST /hash with length and SHA-256 of what came.

aioquic_peer.py server CERTIFICATE KEY [ADDRESS:PORT]
aioquic_peer.py client ROOT PORT UPLOADS SIZE COUNT

The client takes from the server at PORT and sends to the one at UPLOADS, which may be the same.
"""

import asyncio
import hashlib
import sys
import time

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

BLOCK = bytes((n * 7 + (n >> 8)) & 0xFF for n in range(65521))
WINDOW = 64 * 1024 * 1024


def pattern(count: int):
    while count > 0:
        take = min(count, len(BLOCK))
        yield BLOCK[:take]
        count -= take


def hash_of_pattern(count: int) -> str:
    digest = hashlib.sha256()
    for chunk in pattern(count):
        digest.update(chunk)
    return digest.hexdigest()


def configuration(**options) -> QuicConfiguration:
    return QuicConfiguration(
        alpn_protocols=H3_ALPN, max_data=WINDOW, max_stream_data=WINDOW, **options
    )


class Message:
    """What has come on a stream."""

    def __init__(self):
        self.headers = {}
        self.digest = hashlib.sha256()
        self.length = 0
        self.short = b""
        self.over = asyncio.get_running_loop().create_future()

    def on_event(self, event) -> None:
        if isinstance(event, HeadersReceived) and not self.headers:
            self.headers = dict(event.headers)
        if isinstance(event, DataReceived):
            self.digest.update(event.data)
            self.length += len(event.data)
            if self.length < 1000:
                self.short += event.data
        if event.stream_ended and not self.over.done():
            self.over.set_result(None)


class Http3(QuicConnectionProtocol):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.http = H3Connection(self._quic)
        self.messages = {}

    def quic_event_received(self, event) -> None:
        for event in self.http.handle_event(event):
            if isinstance(event, (HeadersReceived, DataReceived)):
                new = event.stream_id not in self.messages
                message = self.messages.setdefault(event.stream_id, Message())
                message.on_event(event)
                if new and not self._quic.configuration.is_client:
                    asyncio.ensure_future(self.answer(event.stream_id, message))

    async def send_body(self, stream: int, chunks) -> None:
        # aioquic keeps what is written until it is acknowledged: in pieces, with turns between.
        for chunk in chunks:
            self.http.send_data(stream, chunk, end_stream=False)
            sender = self._quic._streams[stream].sender
            self.transmit()
            while len(sender._buffer) > WINDOW // 8:
                await asyncio.sleep(0.001)
        self.http.send_data(stream, b"", end_stream=True)
        self.transmit()

    async def answer(self, stream: int, message: Message) -> None:
        path = message.headers[b":path"].decode().partition("?")[0]
        status, chunks = 404, []
        if path.startswith("/bytes/"):
            status, chunks = 200, pattern(int(path.removeprefix("/bytes/")))
        elif path == "/hash":
            await message.over
            status, chunks = 200, [f"{message.length} {message.digest.hexdigest()}".encode()]
        elif path == "/":
            status, chunks = 200, [b"hello over HTTP/3\n"]
        self.http.send_headers(stream, [(b":status", str(status).encode())])
        await self.send_body(stream, chunks)
        self.messages.pop(stream, None)

    async def ask(self, method: bytes, path: str, chunks=None) -> Message:
        stream = self._quic.get_next_available_stream_id()
        message = self.messages.setdefault(stream, Message())
        headers = [
            (b":method", method),
            (b":scheme", b"https"),
            (b":authority", b"localhost"),
            (b":path", path.encode()),
        ]
        self.http.send_headers(stream, headers, end_stream=chunks is None)
        if chunks is not None:
            await self.send_body(stream, chunks)
        self.transmit()
        await message.over
        return self.messages.pop(stream)


def check(what: str, seen, expected) -> None:
    if seen != expected:
        sys.exit(f"{what}: {seen}, expected {expected}")


def connect_to(root: str, port: int):
    options = configuration(is_client=True)
    options.load_verify_locations(root)
    return connect("localhost", port, configuration=options, create_protocol=Http3)


async def run_client(root: str, port: int, uploads: int, size: int, count: int) -> None:
    expected = hash_of_pattern(size)
    async with connect_to(root, port) as http:
        begun = time.monotonic()
        message = await http.ask(b"GET", f"/bytes/{size}")
        check("status", message.headers[b":status"], b"200")
        check("bytes received", message.length, size)
        check("hash", message.digest.hexdigest(), expected)
        print(f"{size} bytes down in {time.monotonic() - begun:.1f} s, the hashes agree")
        message = await http.ask(b"GET", "/not/there")
        check("status", message.headers[b":status"], b"404")
        messages = await asyncio.gather(
            *(http.ask(b"GET", f"/bytes/{number % 1000}") for number in range(count))
        )
        for number, message in enumerate(messages):
            check("length", message.length, number % 1000)
            check("hash", message.digest.hexdigest(), hash_of_pattern(number % 1000))
        print(f"{count} requests at once")
    async with connect_to(root, uploads) as http:
        begun = time.monotonic()
        message = await http.ask(b"POST", "/hash", pattern(size))
        check("what was sent", message.short.decode(), f"{size} {expected}")
        print(f"{size} bytes up in {time.monotonic() - begun:.1f} s, the hashes agree")


async def run_server(certificate: str, key: str, address: str) -> None:
    options = configuration(is_client=False)
    options.load_cert_chain(certificate, key)
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    server = await serve(host, int(port), configuration=options, create_protocol=Http3)
    print("listening on %s:%d" % server._transport.get_extra_info("sockname")[:2], flush=True)
    await asyncio.Event().wait()


match sys.argv[1:]:
    case ["server", certificate, key, *address] if len(address) <= 1:
        asyncio.run(run_server(certificate, key, *(address or ["127.0.0.1:0"])))
    case ["client", root, *numbers] if len(numbers) == 4:
        asyncio.run(run_client(root, *map(int, numbers)))
    case _:
        sys.exit(__doc__)
