"""curl against our servers: curl_client.py ROOT PORT UPLOADS SIZE

Files are at PORT, at UPLOADS is what takes what is sent.
"""

import concurrent.futures
import hashlib
import sys
import time

import curl_cffi
from curl_cffi import CurlHttpVersion, CurlOpt

BLOCK = bytes((n * 7 + (n >> 8)) & 0xFF for n in range(65521))
HTTP3 = 30


def pattern(count: int) -> bytes:
    return (BLOCK * (count // len(BLOCK) + 1))[:count]


def check(what: str, seen, expected) -> None:
    if seen != expected:
        sys.exit(f"{what}: {seen}, expected {expected}")


class Client:
    def __init__(self, root: str, port: str):
        self.origin = f"https://localhost:{port}"
        self.session = curl_cffi.Session(
            verify=root,
            http_version=CurlHttpVersion.V3ONLY,
            curl_options={CurlOpt.RESOLVE: [f"localhost:{port}:127.0.0.1"]},
            timeout=120,
        )

    def ask(self, method: str, path: str, **options):
        response = self.session.request(method, self.origin + path, **options)
        check("version", response.http_version, HTTP3)
        return response


root, port, uploads, size = *sys.argv[1:4], int(sys.argv[4])
client = Client(root, port)
sender = Client(root, uploads)
response = sender.ask("GET", "/")
check("text", response.text, "hello over HTTP/3\n")
response = sender.ask("POST", "/echo", data=b"what was sent", headers={"x-many": "v" * 5000})
check("echo", response.content, b"what was sent")
check("status of what is not there", client.ask("GET", "/not/there").status_code, 404)
print("GET, POST and 404")

body = pattern(size)
begun = time.monotonic()
response = client.ask("GET", f"/bytes/{size}")
check("hash", hashlib.sha256(response.content).hexdigest(), hashlib.sha256(body).hexdigest())
print(f"{size} bytes down in {time.monotonic() - begun:.1f} s, the hashes agree")
begun = time.monotonic()
response = sender.ask("POST", "/hash", data=body)
check("what was sent", response.text, f"{size} {hashlib.sha256(body).hexdigest()}")
print(f"{size} bytes up in {time.monotonic() - begun:.1f} s, the hashes agree")


def many(seed: int) -> int:
    client = Client(root, port)
    for number in range(seed, seed + 100):
        response = client.ask("GET", f"/bytes/{number}")
        check("content", response.content, pattern(number))
    return 100


with concurrent.futures.ThreadPoolExecutor(20) as pool:
    print(sum(pool.map(many, range(20))), "requests on 20 connections at once")
