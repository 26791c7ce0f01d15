#!/usr/bin/env python3
"""Compares the requests of `courser get` with those of curl, byte by byte.

    compare.py [--courser PROGRAM] [--curl PROGRAM]... [--only TEXT] [-v]

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

The lines of `failures.txt` meet the servers of faulty.py. Of them, output, files, exit codes and the codes in
messages are compared, but not requests.

Several versions of curl may be given; a case is alike if it is so with one of them. A line that begins with
`! REASON:` differs on purpose from all of them, and one that begins with `~ REASON:` from some. Ends with 1 if
another case differs.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import faulty

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
    (folder / "large").write_bytes(b"y" * (1024 * 1024 + 1))
    (folder / "etag").write_text('"v1"\n')
    (folder / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (folder / "config").write_text('# flags\nheader = "X-Config: yes"\ndata = "from=config"\n')
    (folder / "jar").write_text("127.0.0.1\tFALSE\t/\tFALSE\t0\tkept\tyes\n")


def run(program, line, folder):
    """Runs a command line. Returns its requests, output, exit code and so on."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files(folder)
    for server in SERVERS:
        server.requests.clear()
    done, written = execute(program, placed(line, folder), folder)
    requests = [request for server in SERVERS for request in server.requests]
    return normalized(requests), *outcome(done), written


def placed(line, folder):
    """Returns a command line of cases.txt with the names of the servers and the folder."""
    url, other = (f"http://127.0.0.1:{server.port}" for server in SERVERS)
    line = line.replace("{url}", url).replace("{other}", other).replace("{dir}", str(folder))
    return line.replace("{port}", str(SERVERS[0].port))


def execute(program, line, folder):
    """Runs a command line in a folder. Returns the process and the files that it has written."""
    line, _, given = line.partition(" <<< ")
    command = line.removeprefix("sh: ")
    words = [*program, *shlex.split(line)] if command == line else ["bash", "-c", command]
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    done = subprocess.run(
        words,
        input=given.encode(),
        capture_output=True,
        timeout=60,
        cwd=folder,
        env=environment | {"HOME": str(folder), "CURL": shlex.join(program)},
    )
    written = {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in ("jar", "data.txt", "second.bin", "large")
    }
    return done, written


def outcome(done):
    """Returns the output, the exit code, and the code in the last message.

    curl has no code in messages about its command line.
    """
    codes = re.findall(rb"^(?:curl|courser): \((\d+)\)", done.stderr, re.M)
    is_usage = done.returncode in (2, 26)
    return done.stdout, done.returncode, codes[-1] if codes and not is_usage else b""


def run_failure(program, line, ports, keys):
    """Runs a command line of failures.txt. Returns the same as `run`."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "part").write_bytes(b"01234")
        for name, port in ports.items():
            line = line.replace(f"{{{name}}}", f"127.0.0.1:{port}")
        done, written = execute(program, line.replace("{keys}", str(keys)), folder)
    return "", *outcome(done), written


def cases(file, only):
    """Returns the lines of a file, each with its mark and its reason."""
    for line in (HERE / file).read_text().splitlines():
        line = line.strip()
        if not line or line.startswith("#") or only not in line:
            continue
        mark, reason = "", ""
        if line[:2] in ("! ", "~ "):
            mark = line[0]
            reason, line = line[2:].split(": ", 1)
        yield mark, reason, line


class Tally:
    """Counts cases, and prints those that differ."""

    def __init__(self):
        self.same = self.expected = self.differ = 0

    def add(self, case, theirs, own):
        mark, reason, line = case
        is_same = own in theirs
        if is_same and mark == "!":
            print(f"SAME although it should differ ({reason}): {line}")
            self.differ += 1
        elif is_same:
            self.same += 1
        elif mark == "!" or (mark == "~" and len(theirs) == 1):
            self.expected += 1
        else:
            self.differ += 1
            print(f"DIFFERS: {line}")
            names = ("requests", "output", "exit code", "code in the message", "files")
            for name, *values in zip(names, own, *theirs):
                if any(value != values[0] for value in values[1:]):
                    print(f"  {name} of courser: {values[0]!r:.2000}")
                    for value in values[1:]:
                        print(f"  {name} of curl:    {value!r:.2000}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--courser", default="courser")
    parser.add_argument("--curl", action="append", default=[])
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    for _ in range(2):
        SERVERS.append(Server())
        SERVERS[-1].start()
    print(f"left out of the comparison: {CHANGES}")
    curls = [[curl] for curl in arguments.curl or ["curl"]]
    own = [arguments.courser, "get"]
    tally = Tally()
    with tempfile.TemporaryDirectory() as temporary:
        folder, keys = Path(temporary) / "files", Path(temporary) / "keys"
        for case in cases("cases.txt", arguments.only):
            theirs = [run(curl, case[2], folder) for curl in curls]
            tally.add(case, theirs, run(own, case[2], folder))
        keys.mkdir()
        ports = faulty.start(keys)
        failures = list(cases("failures.txt", arguments.only))
        with ThreadPoolExecutor(4) as pool:
            runs = [
                [pool.submit(run_failure, program, case[2], ports, keys) for program in [*curls, own]]
                for case in failures
            ]
            for case, done in zip(failures, runs):
                *theirs, ours = (future.result() for future in done)
                tally.add(case, theirs, ours)
    print(f"{tally.same} alike, {tally.expected} differ for a reason, {tally.differ} differ")
    sys.exit(1 if tally.differ else 0)


main()
