"""A relay for HTTP/2 over TLS that writes down the frames of both sides, and the clients that use it.

The text has a line for each frame of the client, and for those of the server that show what becomes of a
request: milliseconds, `c` or `s`, frame, stream, number, and `end` at the end of a side of a stream. The
number is the increment of WINDOW_UPDATE, the code of RST_STREAM, the initial window of SETTINGS or `-`, and
else the length.
"""

import asyncio
import ssl
import threading
import time

NAMES = ["DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING", "GOAWAY",
         "WINDOW_UPDATE", "CONTINUATION"]
PREFACE = 24
INITIAL_WINDOW = 4
OF_SERVER = {"DATA", "HEADERS", "RST_STREAM"}


class Recording:
    """The frames of one connection."""

    def __init__(self):
        self.lines, self.begun, self.requests, self.cancelled, self.failure = [], time.monotonic(), 0, 0, None

    def add(self, side, kind, flags, stream, payload):
        name = NAMES[kind] if kind < len(NAMES) else "PRIORITY_UPDATE" if kind == 16 else "UNKNOWN"
        if side == "s" and name == "GOAWAY" and any(payload[4:8]):
            self.failure = f"the server closed the connection: {payload}"
        if side == "s" and name not in OF_SERVER:
            return
        number = len(payload)
        if name == "WINDOW_UPDATE" or name == "RST_STREAM":
            number = int.from_bytes(payload, "big") & 0x7FFFFFFF
        elif name == "SETTINGS":
            settings = {payload[at + 1]: payload[at + 2:at + 6] for at in range(0, len(payload), 6)}
            window = settings.get(INITIAL_WINDOW)
            number = "-" if window is None else int.from_bytes(window, "big")
        if side == "c":
            self.requests += name == "HEADERS"
            self.cancelled += name == "RST_STREAM"
        is_end = kind < 2 and flags & 1
        at = round((time.monotonic() - self.begun) * 1000)
        self.lines.append(f"{at} {side} {name} {stream} {number}{' end' if is_end else ''}")


class Relay:
    """Takes clients with a certificate, and passes their frames to a server on loopback."""

    def __init__(self, certificate, key, port):
        self.recordings, self.server = [], port
        self.incoming = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.incoming.load_cert_chain(certificate, key)
        self.incoming.set_alpn_protocols(["h2"])
        self.outgoing = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.outgoing.check_hostname, self.outgoing.verify_mode = False, ssl.CERT_NONE
        self.outgoing.set_alpn_protocols(["h2"])
        started = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.run(started)), daemon=True).start()
        started.wait()

    async def run(self, started):
        server = await asyncio.start_server(self.relay, "127.0.0.1", 0, ssl=self.incoming)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await server.serve_forever()

    async def relay(self, reader, writer):
        recording = Recording()
        self.recordings.append(recording)
        try:
            onward = await asyncio.open_connection("localhost", self.server, ssl=self.outgoing,
                                                   server_hostname="localhost")
            preface = await reader.readexactly(PREFACE)
            onward[1].write(preface)
            await asyncio.gather(self.copy("c", reader, onward[1], recording),
                                 self.copy("s", onward[0], writer, recording))
        except (OSError, asyncio.IncompleteReadError):
            # Clients that go away are no news.
            writer.close()

    @staticmethod
    async def copy(side, reader, writer, recording):
        try:
            while True:
                head = await reader.readexactly(9)
                payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
                stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
                recording.add(side, head[3], head[4], stream, payload)
                writer.write(head + payload)
                await writer.drain()
        finally:
            writer.close()

    def busiest(self):
        return max(self.recordings, key=lambda recording: len(recording.lines))
