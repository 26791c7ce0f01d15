"""An origin over HTTP/1.1 that reports what it has received, byte for byte. `origin.py PORT`."""

import asyncio
import gzip
import hashlib
import json
import re
import sys

MODIFIED = "Tue, 10 Mar 2026 08:00:00 GMT"
DATE = "Tue, 10 Mar 2026 09:00:00 GMT"
TEXT = ("Content-Type", "text/plain")
# Status, fields and content of paths by their first part.
FIXED = {
    "login": (
        "302 Found",
        [("Location", "https://localhost/account?a=1"), ("Set-Cookie", "sid=1; HttpOnly"), ("Set-Cookie", "t=2")],
        b"",
    ),
    "old": ("301 Moved Permanently", [("Location", "/new"), ("Content-Type", "text/html")], b"<a href=/new>"),
    "gone": ("410 Gone", [], b""),
    "204": ("204 No Content", [("X-A", "1")], b""),
    "401": ("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="x"'), ("WWW-Authenticate", "Bearer")], b"no"),
    "500": ("500 Internal Server Error", [("Content-Type", "application/json")], b"{}"),
    "599": ("599 Own", [], b"own"),
    "big": ("200 OK", [("Content-Type", "application/octet-stream")], b"z" * 300_000),
    "fields": (
        "200 OK",
        [
            ("X-Multi", "a"),
            ("X-Multi", "b"),
            ("X-Utf", "caf\u00c3\u00a9"),
            ("X-Empty", ""),
            ("Content-Disposition", 'attachment; filename="\u00fc.txt"'),
            ("Link", "</a.css>; rel=preload"),
            ("Keep-Alive", "timeout=5"),
            ("Content-Language", "de, en"),
        ],
        b"ok",
    ),
}


class Exchange:
    """A request and the connection to answer on."""

    def __init__(self, head, writer):
        lines = head[:-4].decode("latin1").split("\r\n")
        self.method, self.target, version = lines[0].split(" ")
        pairs = (line.split(":", 1) for line in lines[1:])
        self.fields = [(name.lower(), value.strip()) for name, value in pairs]
        self.writer = writer
        self.content = b""
        self.is_kept = version == "HTTP/1.1" and self.get("connection").lower() != "close"

    def get(self, name):
        return next((value for key, value in self.fields if key == name), "")

    async def receive(self, reader):
        if self.get("transfer-encoding"):
            while size := int((await reader.readline()).split(b";")[0], 16):
                self.content += await reader.readexactly(size)
                await reader.readexactly(2)
            while await reader.readline() not in (b"\r\n", b""):
                pass
        elif length := self.get("content-length"):
            self.content = await reader.readexactly(int(length))

    def send(self, status, fields, content=b"", framing="length"):
        is_bare = self.method == "HEAD" or status[:3] in ("204", "304")
        lines = [f"HTTP/1.1 {status}", f"Date: {DATE}"]
        lines += [f"{name}: {value}" for name, value in fields]
        if framing == "length" and status[:3] not in ("204", "304"):
            lines.append(f"Content-Length: {len(content)}")
        if framing == "chunked":
            lines.append("Transfer-Encoding: chunked")
        if framing == "close":
            self.is_kept = False
        if not self.is_kept:
            lines.append("Connection: close")
        self.writer.write("\r\n".join(lines).encode("latin1") + b"\r\n\r\n")
        if is_bare:
            return
        if framing == "chunked":
            for start in range(0, len(content), 1000):
                piece = content[start : start + 1000]
                self.writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            content = b"0\r\n\r\n"
        self.writer.write(content)

    def file(self):
        path = self.target.split("?")[0].encode("latin1")
        digest = hashlib.sha256(path).hexdigest()
        content = (path + b"\n") * (int(digest[:4], 16) % 900 + 1)
        tag = f'"{digest[:10]}"'
        fields = [("ETag", tag), ("Last-Modified", MODIFIED), ("Content-Type", "text/css")]
        fields += [("Cache-Control", "public, max-age=600"), ("X-Seen", f"{self.method} {self.target}")]
        tags, since = self.get("if-none-match"), self.get("if-modified-since")
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.get("range"))
        if tags == tag or (since == MODIFIED and not tags):
            self.send("304 Not Modified", fields)
        elif asked and any(asked.groups()):
            first, last = asked.groups()
            start = int(first) if first else max(0, len(content) - int(last))
            end = min(int(last), len(content) - 1) if first and last else len(content) - 1
            if start > end:
                fields.append(("Content-Range", f"bytes */{len(content)}"))
                self.send("416 Range Not Satisfiable", fields)
            else:
                fields.append(("Content-Range", f"bytes {start}-{end}/{len(content)}"))
                self.send("206 Partial Content", fields, content[start : end + 1])
        elif "gzip" in self.get("accept-encoding"):
            fields += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
            self.send("200 OK", fields, gzip.compress(content, mtime=0))
        else:
            self.send("200 OK", fields, content)

    def answer(self):
        first = re.split(r"[/?]", self.target.lstrip("/"))[0]
        if first == "static":
            self.file()
        elif first == "chunked":
            self.send("200 OK", [TEXT], b"x" * 5000, "chunked")
        elif first == "close":
            self.send("200 OK", [TEXT], b"y" * 3000, "close")
        elif first in FIXED:
            self.send(*FIXED[first])
        else:
            digest = hashlib.sha256(self.content).hexdigest()
            report = {"method": self.method, "target": self.target, "fields": self.fields, "content": digest}
            self.send("200 OK", [("Content-Type", "application/json")], json.dumps(report).encode())


async def serve(reader, writer):
    try:
        is_kept = True
        while is_kept:
            exchange = Exchange(await reader.readuntil(b"\r\n\r\n"), writer)
            await exchange.receive(reader)
            exchange.answer()
            await writer.drain()
            is_kept = exchange.is_kept
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), limit=1 << 20, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
