"""The server behind `courser serve --proxy`: tells what was sent to it, over HTTP/1.1.

POST /hash is answered with "LENGTH SHA-256" of the content, POST /echo with the content itself,
GET / with a short text, all else with 404.
"""

import hashlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 1024 * 1024


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/":
            self.answer(200, b"hello over HTTP/3\n")
        else:
            self.answer(404, b"")

    def do_POST(self):
        if self.path == "/hash":
            length, digest = 0, hashlib.sha256()
            for piece in self.content():
                length += len(piece)
                digest.update(piece)
            self.answer(200, f"{length} {digest.hexdigest()}".encode())
        elif self.path == "/echo":
            self.answer(200, b"".join(self.content()))
        else:
            self.close_connection = True
            self.answer(404, b"")

    def content(self):
        """The content in pieces, RFC 9112 §6 and §7.1."""
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            yield from self.pieces(int(self.headers.get("content-length", 0)))
            return
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield from self.pieces(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    def pieces(self, left):
        while left > 0:
            piece = self.rfile.read(min(left, PIECE))
            if not piece:
                raise ConnectionError("the content ends too early")
            left -= len(piece)
            yield piece

    def answer(self, status, content):
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


server = Server(("127.0.0.1", 0), Handler)
print("listening on 127.0.0.1:%d" % server.server_address[1], flush=True)
server.serve_forever()
