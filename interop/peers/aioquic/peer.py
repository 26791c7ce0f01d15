"""aioquic as a peer of `courser interop matrix`: peer.py server|client, with the variables of the QUIC
interop runner and LISTEN, WWW, CERTS and DOWNLOADS."""

import asyncio
import os
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, StreamDataReceived
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite

# aioquic neither marks packets nor migrates to a preferred address.
SUPPORTED = {
    "handshake",
    "transfer",
    "chacha20",
    "multiconnect",
    "retry",
    "resumption",
    "zerortt",
    "http3",
    "keyupdate",
    "v2",
}
HQ = "hq-interop"
V1, V2 = QuicProtocolVersion.VERSION_1, QuicProtocolVersion.VERSION_2


def configuration(test: str, protocols: list, **options) -> QuicConfiguration:
    made = QuicConfiguration(alpn_protocols=protocols, idle_timeout=60.0, **options)
    made.supported_versions = [V2, V1] if test == "v2" else [V1]
    if made.is_client:
        made.original_version = V1
    if log := os.environ.get("SSLKEYLOGFILE"):
        made.secrets_log_file = open(log, "a", encoding="ascii", buffering=1)
    return made


class Server(QuicConnectionProtocol):
    http = None

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.requests = {}

    def quic_event_received(self, event) -> None:
        if isinstance(event, ProtocolNegotiated) and event.alpn_protocol in H3_ALPN:
            self.http = H3Connection(self._quic)
        if self.http is not None:
            for http_event in self.http.handle_event(event):
                if isinstance(http_event, HeadersReceived):
                    path = dict(http_event.headers)[b":path"].decode()
                    self.answer_http3(http_event.stream_id, path)
        elif isinstance(event, StreamDataReceived):
            request = self.requests.get(event.stream_id, b"") + event.data
            self.requests[event.stream_id] = request[:4096]
            if event.end_stream:
                line = self.requests.pop(event.stream_id).decode().strip()
                content = read_file(line.removeprefix("GET "))
                self._quic.send_stream_data(event.stream_id, content or b"", True)
        self.transmit()

    def answer_http3(self, stream: int, path: str) -> None:
        content = read_file(path)
        status = b"404" if content is None else b"200"
        self.http.send_headers(stream, [(b":status", status)])
        self.http.send_data(stream, content or b"", True)


def read_file(path: str):
    root = Path(os.environ["WWW"]).resolve()
    file = (root / path.lstrip("/")).resolve()
    return file.read_bytes() if file.parent == root and file.is_file() else None


async def run_server(test: str) -> None:
    made = configuration(test, [HQ, *H3_ALPN], is_client=False)
    certificates = Path(os.environ["CERTS"])
    made.load_cert_chain(certificates / "cert.pem", certificates / "priv.key")
    host, _, port = os.environ["LISTEN"].rpartition(":")
    tickets = {}
    await serve(
        host.strip("[]"),
        int(port),
        configuration=made,
        create_protocol=Server,
        retry=test == "retry",
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
        session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
    )
    await asyncio.Event().wait()


class Client(QuicConnectionProtocol):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = None
        self.downloads = {}

    def quic_event_received(self, event) -> None:
        events = [event]
        if self.http is not None:
            events = self.http.handle_event(event)
        for each in events:
            if isinstance(each, (StreamDataReceived, DataReceived)):
                content, done = self.downloads[each.stream_id]
                content.extend(each.data)
            elif not isinstance(each, HeadersReceived):
                continue
            ended = each.end_stream if isinstance(each, StreamDataReceived) else each.stream_ended
            if ended:
                self.downloads[each.stream_id][1].set_result(None)

    async def download(self, url: str) -> None:
        # aioquic keeps streams beyond the server's limit until they may be opened.
        parts = urlsplit(url)
        stream = self._quic.get_next_available_stream_id()
        content, done = bytearray(), asyncio.get_running_loop().create_future()
        self.downloads[stream] = (content, done)
        if self.http is None:
            self._quic.send_stream_data(stream, f"GET {parts.path}\r\n".encode(), True)
        else:
            headers = {
                b":method": b"GET",
                b":scheme": b"https",
                b":authority": parts.netloc.encode(),
                b":path": parts.path.encode(),
            }
            self.http.send_headers(stream, list(headers.items()), True)
        self.transmit()
        closed = asyncio.ensure_future(self.wait_closed())
        await asyncio.wait({done, closed}, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            sys.exit(f"the connection was closed before {url} arrived")
        folder = Path(os.environ["DOWNLOADS"])
        (folder / parts.path.rpartition("/")[2]).write_bytes(content)


async def run_client(test: str) -> None:
    urls = os.environ["REQUESTS"].split()
    server = urlsplit(urls[0])
    made = configuration(test, H3_ALPN if test == "http3" else [HQ])
    made.verify_mode = ssl.CERT_NONE
    if test == "chacha20":
        made.cipher_suites = [CipherSuite.CHACHA20_POLY1305_SHA256]

    def remember(ticket) -> None:
        made.session_ticket = ticket

    async def fetch(some: list, is_early: bool = False) -> None:
        async with connect(
            server.hostname,
            server.port,
            configuration=made,
            create_protocol=Client,
            session_ticket_handler=remember,
            wait_connected=not is_early,
        ) as client:
            if test == "http3":
                client.http = H3Connection(client._quic)
            downloads = asyncio.gather(*(client.download(url) for url in some))
            if test == "keyupdate":
                await client.ping()
                client.request_key_update()
            await downloads
            if test in ("resumption", "zerortt") and made.session_ticket is None:
                await client.ping()

    if test == "multiconnect":
        for url in urls:
            await fetch([url])
    elif test in ("resumption", "zerortt"):
        await fetch(urls[:1])
        await fetch(urls[1:], is_early=test == "zerortt")
    else:
        await fetch(urls)


def main() -> None:
    test = os.environ["TESTCASE"]
    if test not in SUPPORTED:
        sys.exit(127)
    run = run_server if sys.argv[1] == "server" else run_client
    asyncio.run(run(test))


main()
