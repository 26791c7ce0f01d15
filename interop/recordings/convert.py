"""Turns a trace of `courser serve --qlog` into two short texts that tests replay.

QUIC: a line for each packet with frames other than acknowledgements of something new, which can only pay
for other frames: milliseconds, and its frames as NAME:NUMBER:...

HTTP/3: a line for each frame: milliseconds, stream, frame and size. `response` is the header section of a
final response that the server begins to send, `opened` the first packet of a request that is
cancelled before its header section is read. `insert` and `stream_cancellation` count instructions of QPACK.
"""

import json

# Frames whose effects depend on the connection IDs, keys and tokens of the recorded connection.
LEFT_OUT = {"padding", "crypto", "new_connection_id", "retire_connection_id", "new_token",
            "connection_close", "path_challenge", "path_response", "handshake_done"}


def events(path):
    with open(path, "rb") as file:
        for line in file.read().split(b"\x1e"):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if "name" in event:
                yield event["time"], event["name"], event["data"]


class Acknowledged:
    """The numbers of the server that were acknowledged so far."""

    def __init__(self):
        self.numbers = set()

    def is_new(self, ranges):
        before = len(self.numbers)
        for entry in ranges:
            self.numbers.update(range(entry[0], entry[-1] + 1))
        return len(self.numbers) > before


def quic_frame(frame, acknowledged):
    kind = frame["frame_type"]
    if kind in LEFT_OUT:
        return None
    if kind == "ack":
        return None if acknowledged.is_new(frame["acked_ranges"]) else "ACK"
    if kind == "stream":
        numbers = [frame["stream_id"], frame["offset"], frame["raw"]["length"]]
        return ":".join(map(str, ["STREAM", *numbers])) + (":fin" if frame.get("fin") else "")
    if kind in ("streams_blocked", "max_streams"):
        direction = "bidi" if frame["stream_type"].startswith("bidi") else "uni"
        number = frame.get("limit", frame.get("maximum"))
        return f"{kind.upper()}:{direction}:{number}"
    names = ("stream_id", "error_code", "final_size", "maximum", "limit")
    numbers = [frame[name] for name in names if isinstance(frame.get(name), int)]
    return ":".join(map(str, [kind.upper(), *numbers]))


def shortened(lines):
    """Adds up instructions of QPACK that follow each other, and leaves out that a stream is opened if its
    header section is the next that is seen of it."""
    out, following = [], {}
    for line in reversed(lines):
        at, stream, name, size = line.split()
        after = out[-1].split() if out else []
        if stream == "-" and after[:3] == [at, stream, name]:
            out[-1] = f"{at} - {name} {int(after[3]) + int(size)}"
        elif name != "opened" or following.get(stream) != "HEADERS":
            out.append(line)
        following[stream] = name
    return out[::-1]


def convert(path):
    """Returns the lines of QUIC, those of HTTP/3, and counts."""
    quic, http3, begun, acknowledged = [], [], None, Acknowledged()
    packets, opened, responses, hidden = 0, set(), set(), 0
    for time, name, data in events(path):
        if name == "quic:packet_received" and data["header"]["packet_type"] == "1RTT":
            begun = time if begun is None else begun
            at = round(time - begun)
            packets += 1
            frames = [quic_frame(frame, acknowledged) for frame in data.get("frames", [])]
            frames = [frame for frame in frames if frame]
            if frames:
                quic.append(f"{at} {' '.join(frames)}")
            else:
                hidden += 1
            for frame in data.get("frames", []):
                stream = frame.get("stream_id", 1)
                if stream % 4 == 0:
                    if stream not in opened:
                        opened.add(stream)
                        http3.append(f"{at} {stream} opened 0")
                    if frame["frame_type"] in ("reset_stream", "stop_sending"):
                        http3.append(f"{at} {stream} {frame['frame_type'].upper()} 0")
        elif begun is None:
            continue
        elif name == "http3:frame_parsed":
            at, frame = round(time - begun), data["frame"]
            kind = frame["frame_type"]
            if kind == "priority_update":
                # Its size is the stream that it is for.
                http3.append(f"{at} {data['stream_id']} PRIORITY_UPDATE {frame['stream_id']}")
            else:
                size = frame.get("raw", {}).get("payload_length", frame.get("raw", {}).get("length", 0))
                http3.append(f"{at} {data['stream_id']} {kind.upper()} {size}")
        elif name == "http3:frame_created" and data["frame"]["frame_type"] == "headers":
            status = next((field["value"] for field in data["frame"].get("headers", [])
                           if field.get("name") == ":status"), "200")
            stream = data["stream_id"]
            if not status.startswith("1") and stream not in responses:
                responses.add(stream)
                http3.append(f"{round(time - begun)} {stream} response {status}")
        elif name == "qpack:instruction_parsed":
            kind = data["instruction"]["instruction_type"]
            # Acknowledgments answer our own encoder, and are limited by it.
            if kind not in ("section_acknowledgement", "insert_count_increment"):
                kind = "stream_cancellation" if kind == "stream_cancellation" else "insert"
                http3.append(f"{round(time - begun)} - {kind} 1")
        elif name == "quic:connection_closed" and data["initiator"] == "local":
            # Reserved codes above those of HTTP/3 are no errors (RFC 9114 §8.1).
            is_error = 0x100 < data.get("error_code", 0) < 0x1000
            if is_error or "connection_error" in data:
                raise SystemExit(f"the server closed the connection: {data}")
    http3 = shortened(http3)
    facts = {"packets": packets, "acknowledgements": hidden, "requests": len(opened),
             "milliseconds": int(quic[-1].split()[0]) if quic else 0}
    return quic, http3, facts
