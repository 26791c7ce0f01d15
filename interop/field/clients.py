"""Clients over HTTP/1.1, 2 and 3 that send the bytes of a session as they are, and keep what comes back."""

import asyncio
import dataclasses
import ssl

import aioquic.h3.connection as aioquic_h3
import aioquic.h3.events as h3_events
import aioquic.quic.events as quic_events
import h2.events as h2_events
from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.quic.configuration import QuicConfiguration
from h2.config import H2Configuration
from h2.connection import H2Connection

HOST = "localhost"
PATIENCE = 20
# This is a record of what arrives, not a judge.
aioquic_h3.validate_response_headers = lambda *_, **__: None


@dataclasses.dataclass
class Answer:
    status: object = None
    fields: list = dataclasses.field(default_factory=list)
    content: bytes = b""
    is_over: bool = False

    def head(self, pairs):
        fields = [(name.decode(), value.decode("latin1")) for name, value in pairs]
        if status := dict(fields).get(":status"):
            # 100 depends on the time at which content arrives, and the origin sends no other interim response.
            if int(status) >= 200:
                self.status = int(status)
                self.fields = [field for field in fields if field[0] != ":status"]

    def fail(self, why):
        self.status = f"{self.status} {why}"
        self.is_over = True


def context(root, name):
    tls = ssl.create_default_context(cafile=root)
    tls.set_alpn_protocols([name])
    return tls


def bytes_of(request, session, is_last):
    target = request.target
    if session.has_absolute_targets:
        target = f"https://{HOST}{target}"
    lines = [f"{request.method} {target} HTTP/1.{0 if session.is_http10 else 1}", f"Host: {HOST}"]
    lines += [f"{name}: {value}" for name, value in request.fields]
    if session.is_http10 and not is_last:
        lines.append("Connection: keep-alive")
    elif is_last:
        lines.append("Connection: close")
    content = request.content or b""
    if request.content is not None and request.framing == "chunked" and not session.is_http10:
        lines.append("Transfer-Encoding: chunked")
        pieces = [content[start : start + 9000] for start in range(0, len(content), 9000)]
        content = b"".join(b"%x;e=1\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    elif request.content is not None:
        lines.append(f"Content-Length: {len(content)}")
        if request.framing == "expect" and not session.is_http10:
            lines.append("Expect: 100-continue")
    return "\r\n".join(lines).encode("latin1") + b"\r\n\r\n" + content


async def http1_answer(reader, request, is_http10):
    """Returns an answer and whether the connection goes on."""
    answer = Answer()
    while answer.status is None:
        lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        pairs = [line.split(b":", 1) for line in lines[1:-2]]
        pairs = [(name.lower(), value.strip()) for name, value in pairs]
        answer.head([(b":status", lines[0].split(b" ")[1]), *pairs])
    fields = dict(answer.fields)
    options = fields.get("connection", "").lower()
    if request.method == "HEAD" or answer.status in (204, 304):
        pass
    elif fields.get("transfer-encoding"):
        while size := int((await reader.readline()).split(b";")[0], 16):
            answer.content += await reader.readexactly(size)
            await reader.readexactly(2)
        while await reader.readline() != b"\r\n":
            pass
    elif length := fields.get("content-length"):
        answer.content = await reader.readexactly(int(length))
    else:
        answer.content = await reader.read()
    return answer, "keep-alive" in options if is_http10 else "close" not in options


async def http1(port, session, root):
    async def dial():
        tls = context(root, "http/1.1")
        return await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=HOST, limit=1 << 20)

    answers, requests = [], session.requests
    reader, writer = await dial()
    try:
        for index, request in enumerate(requests):
            if index == 0 or not session.is_pipelined:
                last = len(requests) if session.is_pipelined else index + 1
                for number in range(index, last):
                    writer.write(bytes_of(requests[number], session, number + 1 == len(requests)))
            answering = http1_answer(reader, request, session.is_http10)
            answer, goes_on = await asyncio.wait_for(answering, PATIENCE)
            answers.append(answer)
            if not goes_on and index + 1 < len(requests) and not session.is_pipelined:
                writer.close()
                reader, writer = await dial()
    except (OSError, EOFError, ValueError, asyncio.TimeoutError, asyncio.LimitOverrunError) as error:
        answers.append(Answer(type(error).__name__))
    writer.close()
    return answers


def fields_of(request):
    fields = [(":method", request.method), (":scheme", "https"), (":authority", HOST), (":path", request.target)]
    for name, value in request.fields:
        if name == "Cookie":
            fields += [("cookie", crumb) for crumb in value.split("; ")]
        elif name != "TE":
            fields.append((name.lower(), value))
    if request.content is not None and request.framing == "length":
        fields.append(("content-length", str(len(request.content))))
    return [(name.encode("latin1"), value.encode("latin1")) for name, value in fields]


class Http2:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        config = H2Configuration(
            header_encoding=None,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
            validate_inbound_headers=False,
        )
        self.connection = H2Connection(config)
        self.connection.initiate_connection()
        self.connection.increment_flow_control_window(1 << 24)
        self.answers, self.unsent = {}, {}

    def send(self, request):
        stream = self.connection.get_next_available_stream_id()
        self.answers[stream] = Answer()
        self.connection.send_headers(stream, fields_of(request), end_stream=not request.content)
        if request.content:
            self.unsent[stream] = request.content

    def flush(self):
        for stream, content in list(self.unsent.items()):
            while content and (room := min(self.connection.local_flow_control_window(stream), 16_384)) > 0:
                piece, content = content[:room], content[room:]
                self.connection.send_data(stream, piece, end_stream=not content)
            self.unsent[stream] = content
            if not content:
                del self.unsent[stream]
        self.writer.write(self.connection.data_to_send())

    async def wait(self):
        while not all(answer.is_over for answer in self.answers.values()):
            self.flush()
            received = await asyncio.wait_for(self.reader.read(65_536), PATIENCE)
            if not received:
                raise EOFError
            for event in self.connection.receive_data(received):
                self.on_event(event)

    def on_event(self, event):
        answer = self.answers.get(getattr(event, "stream_id", None))
        if isinstance(event, (h2_events.InformationalResponseReceived, h2_events.ResponseReceived)):
            answer.head(event.headers)
        elif isinstance(event, h2_events.DataReceived):
            answer.content += event.data
            self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2_events.StreamEnded):
            answer.is_over = True
        elif isinstance(event, h2_events.StreamReset):
            self.unsent.pop(event.stream_id, None)
            if not answer.is_over:
                answer.fail(f"reset {int(event.error_code)}")
        elif isinstance(event, h2_events.ConnectionTerminated) and event.error_code:
            raise EOFError


async def exchange(client, session):
    """Sends the requests, all at once if they are pipelined. Returns the answers."""
    try:
        for request in session.requests:
            client.send(request)
            if not session.is_pipelined:
                await client.wait()
        await client.wait()
    except (OSError, EOFError, asyncio.TimeoutError) as error:
        for answer in client.answers.values():
            if not answer.is_over:
                answer.fail(type(error).__name__)
    return list(client.answers.values())


async def http2(port, session, root):
    tls = context(root, "h2")
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=HOST)
    answers = await exchange(Http2(reader, writer), session)
    writer.close()
    return answers


class Http3(QuicConnectionProtocol):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http = aioquic_h3.H3Connection(self._quic)
        self.answers, self.event, self.is_closed = {}, asyncio.Event(), False

    def send(self, request):
        stream = self._quic.get_next_available_stream_id()
        self.answers[stream] = Answer()
        self.http.send_headers(stream, fields_of(request), end_stream=not request.content)
        if request.content:
            self.http.send_data(stream, request.content, True)
        self.transmit()

    async def wait(self):
        while not all(answer.is_over for answer in self.answers.values()):
            if self.is_closed:
                raise EOFError
            self.event.clear()
            await asyncio.wait_for(self.event.wait(), PATIENCE)

    def quic_event_received(self, event):
        answer = self.answers.get(getattr(event, "stream_id", None))
        if isinstance(event, quic_events.StreamReset) and answer and not answer.is_over:
            answer.fail(f"reset {event.error_code:#x}")
        elif isinstance(event, quic_events.ConnectionTerminated):
            self.is_closed = True
        for part in self.http.handle_event(event):
            answer = self.answers.get(part.stream_id)
            if answer is None:
                continue
            if isinstance(part, h3_events.HeadersReceived):
                answer.head(part.headers)
            elif isinstance(part, h3_events.DataReceived):
                answer.content += part.data
            answer.is_over = answer.is_over or part.stream_ended
        self.event.set()


async def http3(port, session, root):
    config = QuicConfiguration(is_client=True, alpn_protocols=["h3"], server_name=HOST)
    config.load_verify_locations(root)
    async with connect("127.0.0.1", port, configuration=config, create_protocol=Http3) as client:
        return await exchange(client, session)


VERSIONS = {"HTTP/1.1": http1, "HTTP/2": http2, "HTTP/3": http3}
