"""aioquic as a server of the cases in src: `peer.py server CERTIFICATE KEY` prints its port.

It knows the draft of browsers, and neither capsules nor the codes of sessions, so the tests of these are not for it."""

import asyncio
import sys

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DatagramReceived, HeadersReceived, WebTransportStreamDataReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, StopSendingReceived, StreamDataReceived, StreamReset

FIRST = 0x52E4A40FA8DB


class Protocol(QuicConnectionProtocol):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http = None
        self.bodies = {}
        self.opened = {}

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic, enable_webtransport=True)
        elif isinstance(event, StreamReset):
            # A reset stream is returned with the same code.
            if event.stream_id in self.bodies:
                self._quic.reset_stream(event.stream_id, event.error_code)
        elif isinstance(event, StopSendingReceived):
            if event.stream_id in self.bodies:
                self._quic.stop_stream(event.stream_id, event.error_code)
        if isinstance(event, StreamDataReceived) and event.stream_id in self.opened:
            # The library reads answers on streams of its own as frames of HTTP/3, and would close the connection.
            self.on_answer(event.stream_id, event.data, event.end_stream)
        elif self.http is not None:
            for http_event in self.http.handle_event(event):
                self.on_http(http_event)
        self.transmit()

    def on_http(self, event):
        if isinstance(event, HeadersReceived):
            headers = dict(event.headers)
            is_session = headers.get(b":protocol") == b"webtransport"
            status = b"200" if is_session else b"400"
            self.http.send_headers(event.stream_id, [(b":status", status)], end_stream=not is_session)
            path = headers.get(b":path", b"").decode()
            if is_session and path.startswith("/open/"):
                self.open(event.stream_id, int(path.removeprefix("/open/")))
        elif isinstance(event, DatagramReceived):
            self.http.send_datagram(event.stream_id, event.data)
        elif isinstance(event, WebTransportStreamDataReceived):
            self.on_data(event)

    def open(self, session, count):
        for index in range(count):
            text = f"stream {index}".encode()
            uni = self.http.create_webtransport_stream(session, is_unidirectional=True)
            self._quic.send_stream_data(uni, text, end_stream=True)
            stream = self.http.create_webtransport_stream(session)
            self._quic.send_stream_data(stream, text, end_stream=True)
            self.opened[stream] = [text, b"", session]
        self.failed = 0

    def on_answer(self, stream, data, is_end):
        entry = self.opened[stream]
        entry[1] += data
        if is_end:
            del self.opened[stream]
            self.failed += entry[0] != entry[1]
            if not self.opened:
                last = self.http.create_webtransport_stream(entry[2], is_unidirectional=True)
                self._quic.send_stream_data(last, f"failed {self.failed}".encode(), end_stream=True)

    def on_data(self, event):
        stream = event.stream_id
        if stream % 4 == 0:
            self.bodies[stream] = b""
            self._quic.send_stream_data(stream, event.data, end_stream=event.stream_ended)
        else:
            self.bodies[stream] = self.bodies.get(stream, b"") + event.data
            if event.stream_ended:
                back = self.http.create_webtransport_stream(event.session_id, is_unidirectional=True)
                self._quic.send_stream_data(back, self.bodies.pop(stream), end_stream=True)


async def main(certificate, key):
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=H3_ALPN, max_datagram_frame_size=65536, max_stream_data=1 << 24, max_data=1 << 26
    )
    configuration.load_cert_chain(certificate, key)
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Protocol)
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    _, _, certificate, key = sys.argv
    asyncio.run(main(certificate, key))
