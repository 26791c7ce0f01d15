"""Servers that fail in many ways, for compare.py: each path is a fault, and each port has its certificate."""

import socket
import ssl
import struct
import subprocess
import threading
import time

OK = b"HTTP/1.1 200 OK\r\n"
MOVED = b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: "
#: Answers by path. The connection is kept after those that end, and closed after the others.
WHOLE = {
    b"/": OK + b"content-length: 3\r\n\r\nok\n",
    b"/nul": OK + b"content-length: 3\r\n\r\na\0b",
    b"/no-content": b"HTTP/1.1 204 No Content\r\n\r\n",
    b"/loop": MOVED + b"/loop\r\n\r\n",
    b"/to-file": MOVED + b"file:///etc/passwd\r\n\r\n",
    b"/to-malformed": MOVED + b"http://[bad/\r\n\r\n",
    b"/to-other-scheme": MOVED + b"foo://x/\r\n\r\n",
    b"/to-closed-port": MOVED + b"http://127.0.0.1:1/\r\n\r\n",
    b"/to-nowhere": MOVED + b"\r\n\r\n",
    b"/no-location": b"HTTP/1.1 302 Found\r\ncontent-length: 2\r\n\r\nok",
    b"/bad-gzip": OK + b"content-encoding: gzip\r\ncontent-length: 5\r\n\r\nabcde",
    b"/other-coding": OK + b"content-encoding: foo\r\ncontent-length: 5\r\n\r\nabcde",
    b"/no-range": OK + b"content-length: 5\r\n\r\nabcde",
    b"/416": b"HTTP/1.1 416 Range\r\ncontent-range: bytes */5\r\ncontent-length: 3\r\n\r\nbad",
    b"/401": b"HTTP/1.1 401 No\r\nwww-authenticate: Basic realm=x\r\ncontent-length: 3\r\n\r\nbad",
    b"/404": b"HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nbody",
    b"/500": b"HTTP/1.1 500 Error\r\ncontent-length: 4\r\n\r\nbody",
    b"/503": b"HTTP/1.1 503 Later\r\ncontent-length: 4\r\n\r\nbody",
    b"/retry-after": b"HTTP/1.1 503 Later\r\nretry-after: 1\r\ncontent-length: 4\r\n\r\nbody",
    b"/hints": b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" * 3 + OK + b"content-length: 2\r\n\r\nok",
    b"/dated": OK + b"last-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 2\r\n\r\nok",
    b"/big": OK + b"content-length: 10000000\r\n\r\n" + (b"x" * 99 + b"\n") * 100_000,
}
BROKEN = {
    b"/empty": b"",
    b"/partial": OK + b"content-length: 100\r\n\r\nabcde",
    b"/partial-chunk": OK + b"transfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n",
    b"/bad-chunk": OK + b"transfer-encoding: chunked\r\n\r\nzz\r\nabcde\r\n",
    b"/bad-length": OK + b"content-length: xyz\r\n\r\nabcde",
    b"/negative-length": OK + b"content-length: -5\r\n\r\nabcde",
    b"/text": b"text that is not HTTP\r\n\r\n",
    b"/old": b"plain text",
    b"/half-field": OK + b"content-le",
    b"/unfinished": OK + b"x: y\r\n",
    b"/large-section": OK + b"x: " + b"a" * 400_000 + b"\r\n\r\n",
    b"/no-colon": OK + b"no colon here\r\ncontent-length: 2\r\n\r\nok",
    b"/http2": b"HTTP/2 200 OK\r\ncontent-length: 2\r\n\r\nok",
    b"/status-99": b"HTTP/1.1 99 Low\r\ncontent-length: 2\r\n\r\nok",
}


def reset(connection):
    """Closes a connection with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def answer(connection, path):
    """Answers a request. Returns true if the connection is kept."""
    if path in WHOLE:
        connection.sendall(WHOLE[path])
        return True
    if path in BROKEN:
        connection.sendall(BROKEN[path])
        return False
    match path:
        case b"/reset":
            reset(connection)
        case b"/reset-later":
            connection.sendall(OK + b"content-length: 100\r\n\r\nabcde")
            time.sleep(0.2)
            reset(connection)
        case b"/slow":
            time.sleep(5)
            connection.sendall(WHOLE[b"/"])
            return True
        case b"/slow-content":
            connection.sendall(OK + b"content-length: 10\r\n\r\nabcde")
            time.sleep(5)
        case b"/endless":
            connection.sendall(OK + b"transfer-encoding: chunked\r\n\r\n")
            while True:
                connection.sendall(b"64\r\n" + b"y" * 99 + b"\n\r\n")
        case _:
            connection.sendall(WHOLE[b"/"])
            return True
    return False


def serve(connection):
    connection.settimeout(20)
    data = b""
    try:
        while True:
            while b"\r\n\r\n" not in data:
                part = connection.recv(65536)
                if not part:
                    return
                data += part
            head, data = data.split(b"\r\n\r\n", 1)
            path = head.split(b" ", 2)[1].split(b"?")[0]
            if not answer(connection, path):
                return
    except (OSError, ValueError, IndexError):
        pass
    finally:
        connection.close()


def listen(begin):
    """Calls `begin` in a thread for each connection. Returns the port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=begin, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def over_tls(context):
    def begin(connection):
        try:
            connection.settimeout(20)
            connection = context.wrap_socket(connection, server_side=True)
        except OSError:
            return
        serve(connection)

    return begin


CONFIGURATION = """[ca]
default_ca = own
[own]
database = {folder}/index.txt
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = names
rand_serial = yes
[names]
commonName = supplied
"""


def certificates(folder):
    """Makes certificates: a good one, one for another name, one that has expired, and a self-signed one."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

    def openssl(*arguments):
        command = ["openssl", *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)

    (folder / "ca.cnf").write_text(CONFIGURATION.format(folder=folder))
    (folder / "index.txt").write_text("")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "9", "-subj", "/CN=ca")
    here = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    for name, names, start, end in [
        ("good", here, "20200101000000Z", "20490101000000Z"),
        ("other", "subjectAltName=DNS:other.test", "20200101000000Z", "20490101000000Z"),
        ("expired", here, "20200101000000Z", "20200201000000Z"),
    ]:
        (folder / f"{name}.ext").write_text(names)
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl(
            "ca", "-batch", "-config", "ca.cnf", "-cert", "ca.pem", "-keyfile", "ca.key",
            "-in", f"{name}.csr", "-out", f"{name}.pem", "-startdate", start, "-enddate", end,
            "-extfile", f"{name}.ext", "-notext",
        )
    openssl(
        "req", "-x509", *key, "-keyout", "self.key", "-out", "self.pem", "-days", "9",
        "-subj", "/CN=localhost", "-addext", here,
    )


def start(folder):
    """Starts all servers. Returns their ports by name."""
    certificates(folder)

    def context(name):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
        return context

    ports = {"plain": listen(serve)}
    for name in ("good", "other", "expired", "self"):
        ports[name] = listen(over_tls(context(name)))
    mutual = context("good")
    mutual.verify_mode = ssl.CERT_REQUIRED
    mutual.load_verify_locations(folder / "ca.pem")
    ports["mutual"] = listen(over_tls(mutual))

    def hang_up(connection):
        connection.recv(10)
        connection.close()

    ports["hangup"] = listen(hang_up)
    # Connections are established by the system, and nobody accepts them.
    SILENT.append(socket.create_server(("127.0.0.1", 0)))
    ports["silent"] = SILENT[0].getsockname()[1]
    return ports


SILENT = []
