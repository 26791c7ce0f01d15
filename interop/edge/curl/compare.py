#!/usr/bin/env python3
"""Compares the requests of `courser get` with those of curl, byte by byte.

    compare.py [--courser PROGRAM] [--curl PROGRAM] [--only TEXT] [-v]

A scripted server on loopback records what each program sends over HTTP/1.1 without TLS, answers from a
table, and records the next request. Each line of `cases.txt` is a command line; `{url}` is the server,
`{dir}` a folder with files, `{other}` another port of the server. Requests are compared after these
changes, which the comparison prints as one line at its start:

- names of fields are compared in lower case, and fields other than Host in any order;
- digits of percent-encoded bytes in the target are in upper case;
- the local port in a header of the PROXY protocol is left out;
- the name of the program in User-Agent, and boundaries of multipart are replaced;
- `content-length: 0` of POST, PUT and PATCH without content (RFC 9110 8.6), which curl does not send, is
  left out.

A line that begins with `! REASON:` differs on purpose. Ends with 1 if another case differs, if standard output differs, or if
the exit codes differ.
"""

import argparse
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).parent
CHANGES = "names in lower case, fields in any order, User-Agent and boundaries replaced, content-length: 0 left out"


class Server(threading.Thread):
    """Answers requests from a table by path, and records their bytes."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.requests = []

    def run(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        connection.settimeout(5)
        data = b""
        try:
            while True:
                while b"\r\n\r\n" not in data:
                    part = connection.recv(65536)
                    if not part:
                        return
                    data += part
                head, data = data.split(b"\r\n\r\n", 1)
                if re.search(rb"\r\nexpect: *100-continue", head, re.I):
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                body, data = self.content(connection, head, data)
                self.requests.append((head, body))
                answer = self.answer(head)
                connection.sendall(answer)
                if b"connection: close" in answer:
                    return
        except (OSError, ValueError):
            pass
        finally:
            connection.close()

    @staticmethod
    def content(connection, head, data):
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
        if re.search(rb"\r\ntransfer-encoding: *chunked", head, re.I):
            while not data.endswith(b"0\r\n\r\n"):
                data += connection.recv(65536)
            content, rest = b"", data
            while True:
                size, rest = rest.split(b"\r\n", 1)
                size = int(size.split(b";")[0], 16)
                content, rest = content + rest[:size], rest[size + 2:]
                if size == 0:
                    return b"(chunked)" + content, b""
        wanted = int(length[1]) if length else 0
        while len(data) < wanted:
            part = connection.recv(65536)
            if not part:
                break
            data += part
        return data[:wanted], data[wanted:]

    def answer(self, head):
        method, target = head.split(b" ", 2)[:2]
        path = target.split(b"?")[0]
        other = f"http://127.0.0.1:{SERVERS[1].port}".encode() if len(SERVERS) > 1 else b""
        status, fields, content = b"200 OK", b"", b"content of " + path + b"\n"
        redirect = re.match(rb"/(30[12378])(-other)?(.*)", path)
        if redirect:
            status = redirect[1] + b" Moved"
            base = other if redirect[2] else b""
            fields = b"Location: " + base + (redirect[3] or b"/target") + b"\r\n"
        elif path.startswith(b"/status/"):
            status = path[8:] + b" Status"
        elif path == b"/cookie":
            fields = b"Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=\"2 3\"; Path=/\r\n"
            status, fields = b"302 Found", fields + b"Location: /after\r\n"
        elif path == b"/etag":
            fields = b"ETag: \"v1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        elif path == b"/name":
            fields = b"Content-Disposition: attachment; filename=\"named.txt\"\r\n"
        elif path == b"/range":
            status, fields = b"206 Partial Content", b"Content-Range: bytes 5-9/10\r\n"
            content = b"56789"
        elif path == b"/close":
            fields = b"connection: close\r\n"
        if method == b"HEAD":
            return b"HTTP/1.1 %s\r\n%scontent-length: %d\r\n\r\n" % (status, fields, len(content))
        return b"HTTP/1.1 %s\r\n%scontent-length: %d\r\n\r\n%s" % (status, fields, len(content), content)


SERVERS = []


def normalized(requests):
    """Returns requests as text that does not depend on the program."""
    texts = []
    for head, body in requests:
        line, *fields = head.decode("latin-1").split("\r\n")
        text = body.decode("latin-1")
        line = re.sub(r"^(PROXY TCP4 \S+ \S+) \d+", r"\1 PORT", line)
        line = re.sub(r"%[0-9a-f]{2}", lambda hex: hex[0].upper(), line)
        boundaries = re.findall(r"boundary=(\S+)", head.decode("latin-1") + "\r\n" + text)
        shown = []
        first = fields[0].split(":")[0].lower() if fields else ""
        method = line.split(" ")[0]
        for field in fields:
            if ":" not in field:
                shown.append(field)
                continue
            name, value = field.split(":", 1)
            name, value = name.lower(), value.strip()
            if name == "user-agent":
                value = re.sub(r"^(curl|courser)/\S+$", "PROGRAM", value)
            if name == "content-length" and value == "0" and method in ("POST", "PUT", "PATCH"):
                continue
            if name == "content-length" and boundaries:
                value = "LENGTH"
            shown.append(f"{name}: {value}")
        shown = "\n".join(sorted(shown))
        for number, boundary in enumerate(boundaries):
            shown, text = shown.replace(boundary, f"B{number}"), text.replace(boundary, f"B{number}")
        texts.append(f"{line}\n[first: {first}]\n{shown}\n\n{text}")
    return "\n======\n".join(texts)


def files(folder):
    """Writes the files that command lines name."""
    (folder / "data.txt").write_bytes(b"line one\nline two\r\n")
    (folder / "second.bin").write_bytes(bytes(range(32, 64)))
    (folder / "fields").write_text("X-One: 1\nX-Two: 2\n")
    (folder / "part").write_bytes(b"01234")
    (folder / "etag").write_text('"v1"\n')
    (folder / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (folder / "config").write_text('# flags\nheader = "X-Config: yes"\ndata = "from=config"\n')
    (folder / "jar").write_text("127.0.0.1\tFALSE\t/\tFALSE\t0\tkept\tyes\n")


def run(program, line, folder):
    """Runs a command line. Returns its requests, output and exit code."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files(folder)
    for server in SERVERS:
        server.requests.clear()
    url, other = (f"http://127.0.0.1:{server.port}" for server in SERVERS)
    line = line.replace("{url}", url).replace("{other}", other).replace("{dir}", str(folder))
    line = line.replace("{port}", str(SERVERS[0].port))
    line, _, given = line.partition(" <<< ")
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    done = subprocess.run(
        [*program, *shlex.split(line)],
        input=given.encode(),
        capture_output=True,
        timeout=60,
        cwd=folder,
        env=environment | {"HOME": str(folder)},
    )
    requests = [request for server in SERVERS for request in server.requests]
    written = {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in ("jar", "data.txt", "second.bin")
    }
    return normalized(requests), done.stdout, done.returncode, written, done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--courser", default="courser")
    parser.add_argument("--curl", default="curl")
    parser.add_argument("--only", default="")
    parser.add_argument("-v", action="store_true")
    arguments = parser.parse_args()
    for _ in range(2):
        SERVERS.append(Server())
        SERVERS[-1].start()
    print(f"left out of the comparison: {CHANGES}")
    lines = [line.strip() for line in (HERE / "cases.txt").read_text().splitlines()]
    cases = [line for line in lines if line and not line.startswith("#") and arguments.only in line]
    same, differ, expected = 0, 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "files"
        for case in cases:
            reason, line = None, case
            if case.startswith("! "):
                reason, line = case[2:].split(": ", 1)
            curl = run([arguments.curl], line, folder)
            ours = run([arguments.courser, "get"], line, folder)
            if curl[:4] == ours[:4]:
                same += 1
                if reason:
                    print(f"SAME although it should differ ({reason}): {line}")
                    differ += 1
                continue
            if reason:
                expected += 1
                continue
            differ += 1
            print(f"DIFFERS: {line}")
            for name, (theirs, own) in zip(
                ("requests", "output", "exit code", "files"), zip(curl, ours)
            ):
                if theirs != own:
                    print(f"  {name} of curl:    {theirs!r}\n  {name} of courser: {own!r}")
            if arguments.v or ours[2] != curl[2]:
                print(f"  messages: {ours[4]!r}")
    print(f"{same} alike, {expected} differ for a reason, {differ} differ")
    sys.exit(1 if differ else 0)


main()
