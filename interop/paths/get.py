"""One request of a client in Python: get.py curl|aioquic ROOT URL"""

import asyncio
import ssl
import sys
from urllib.parse import urlsplit


def with_curl(root: str, url: str) -> int:
    import curl_cffi
    from curl_cffi import CurlHttpVersion

    session = curl_cffi.Session(verify=root, http_version=CurlHttpVersion.V3ONLY, timeout=60)
    response = session.get(url)
    assert response.status_code == 200, response.status_code
    return len(response.content)


async def with_aioquic(root: str, url: str) -> int:
    from aioquic.asyncio import QuicConnectionProtocol, connect
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import DataReceived, HeadersReceived
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.events import ConnectionTerminated

    parts = urlsplit(url.replace("%25", "%"))
    window = 64 * 1024 * 1024
    over = asyncio.get_running_loop().create_future()

    class Http3(QuicConnectionProtocol):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.http, self.length, self.status = H3Connection(self._quic), 0, b""

        def quic_event_received(self, event) -> None:
            if isinstance(event, ConnectionTerminated) and not over.done():
                over.set_exception(ConnectionError(event.reason_phrase))
            for event in self.http.handle_event(event):
                if isinstance(event, HeadersReceived):
                    self.status = dict(event.headers)[b":status"]
                if isinstance(event, DataReceived):
                    self.length += len(event.data)
                if getattr(event, "stream_ended", False) and not over.done():
                    over.set_result(None)

    options = QuicConfiguration(
        alpn_protocols=H3_ALPN, is_client=True, max_data=window, max_stream_data=window
    )
    options.verify_mode = ssl.CERT_REQUIRED
    options.load_verify_locations(root)
    async with connect(
        parts.hostname, parts.port, configuration=options, create_protocol=Http3
    ) as http:
        stream = http._quic.get_next_available_stream_id()
        headers = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", parts.path.encode())]
        headers.append((b":authority", parts.netloc.encode()))
        http.http.send_headers(stream, headers, end_stream=True)
        http.transmit()
        await over
        assert http.status == b"200", http.status
        return http.length


kind, root, url = sys.argv[1:]
print(with_curl(root, url) if kind == "curl" else asyncio.run(with_aioquic(root, url)))
