"""aioquic's side of examples/interop_hash.rs, which tells the protocol, and a certificate for both.

peer.py certificate FOLDER
peer.py server CERTIFICATE KEY
peer.py client CERTIFICATE ADDRESS
"""

import asyncio
import datetime
import hashlib
import ipaddress
import os
import pathlib
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted, QuicEvent
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PROTOCOL = "interop-hash"
LENGTH = 1_000_000
HASH_LENGTH = 32
# For the whole exchange; far more than it takes.
TIMEOUT = 60


class Peer(QuicConnectionProtocol):
    """Tells about the handshake and remembers how the connection ended."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ending = asyncio.get_running_loop().create_future()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, HandshakeCompleted):
            print(f"handshake complete, protocol {event.alpn_protocol}", flush=True)
        if isinstance(event, ConnectionTerminated) and not self.ending.done():
            self.ending.set_result(event)
        super().quic_event_received(event)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    upload = await reader.read()
    download = os.urandom(LENGTH)
    writer.write(hashlib.sha256(upload).digest())
    writer.write(download)
    writer.write(hashlib.sha256(download).digest())
    writer.write_eof()
    print(f"received {len(upload)} bytes", flush=True)


async def run_server(certificate: str, key: str) -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=[PROTOCOL])
    configuration.load_cert_chain(certificate, key)
    first = asyncio.get_running_loop().create_future()
    tasks = []

    def on_connection(*args, **kwargs) -> Peer:
        peer = Peer(*args, **kwargs)
        if not first.done():
            first.set_result(peer)
        return peer

    def on_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.ensure_future(answer(reader, writer)))

    server = await serve(
        "127.0.0.1",
        0,
        configuration=configuration,
        create_protocol=on_connection,
        stream_handler=on_stream,
    )
    host, port = server._transport.get_extra_info("sockname")
    print(f"listening on {host}:{port}", flush=True)
    ending = await (await first).ending
    await asyncio.gather(*tasks)
    server.close()
    expect_clean(ending)


async def run_client(certificate: str, address: str) -> None:
    configuration = QuicConfiguration(alpn_protocols=[PROTOCOL], server_name="localhost")
    configuration.load_verify_locations(certificate)
    host, port = address.rsplit(":", 1)
    async with connect(
        host, int(port), configuration=configuration, create_protocol=Peer
    ) as peer:
        reader, writer = await peer.create_stream()
        upload = os.urandom(LENGTH)
        writer.write(upload)
        writer.write_eof()
        reply = await reader.read()
        of_upload, download = reply[:HASH_LENGTH], reply[HASH_LENGTH:-HASH_LENGTH]
        assert of_upload == hashlib.sha256(upload).digest(), "the upload's hash differs"
        assert reply[-HASH_LENGTH:] == hashlib.sha256(download).digest(), "the download's differs"
        assert len(download) == LENGTH, f"{len(download)} bytes"
        print(f"{len(upload)} bytes up and {len(download)} down, the hashes agree")
        peer.close(error_code=0, reason_phrase="done")
        await peer.wait_closed()
        expect_clean(await peer.ending)


def expect_clean(ending: ConnectionTerminated) -> None:
    # Without a frame type it is the application's close.
    print(f"closed with code {ending.error_code} ({ending.reason_phrase!r})", flush=True)
    assert ending.frame_type is None, "closed by the transport"
    assert (ending.error_code, ending.reason_phrase) == (0, "done")


def make_certificate(folder: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "interop")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=7))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = pathlib.Path(folder)
    path.joinpath("certificate.pem").write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
    )
    path.joinpath("key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def main() -> None:
    match sys.argv[1:]:
        case ["certificate", folder]:
            make_certificate(folder)
        case ["server", certificate, key]:
            asyncio.run(asyncio.wait_for(run_server(certificate, key), TIMEOUT))
        case ["client", certificate, address]:
            asyncio.run(asyncio.wait_for(run_client(certificate, address), TIMEOUT))
        case _:
            sys.exit(__doc__)


main()
