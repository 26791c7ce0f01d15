"""Targets of a proxy: a folder over HTTP/1.1, and a TCP server that answers after the end of what it receives.

Prints the ports of both.
"""

import functools
import http.server
import socketserver
import sys
import threading


class Counter(socketserver.BaseRequestHandler):
    def handle(self):
        received = 0
        while data := self.request.recv(65536):
            received += len(data)
        self.request.sendall(b"received %d bytes" % received)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def begin(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


folder = functools.partial(Quiet, directory=sys.argv[1])
ports = [
    begin(http.server.ThreadingHTTPServer(("127.0.0.1", 0), folder)),
    begin(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Counter)),
]
print(*ports, flush=True)
threading.Event().wait()
