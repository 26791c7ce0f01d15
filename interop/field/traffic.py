"""Sessions of clients as an access log has them: popular paths, forms, uploads, caches, players, and bots."""

import dataclasses
import random

MODIFIED = "Tue, 10 Mar 2026 08:00:00 GMT"
FILES = "app.css app.js a.png f/b.woff2 v/1.mp4 a%20b %C3%BC.css x;y=1 a%2Fb ~u/z (1) 'q' a!$&*+,=:@".split()
PAGES = "/ /product/17 /search /login /old /gone /204 /fields /401 /500 /599 /chunked /close /big /api/cart"
PATHS = [f"/static/{name}" for name in FILES] + PAGES.split()
# What bots and broken pages ask for. Missing are `"`, `<` and `>` in a query and a backtick in a path, which http::Uri
# refuses, and what nginx refuses: `%` without two digits, and dots that lead out of the root.
ODD = """/wp-login.php /.env //double//slash /a/../b /a/./b/../../c /a/%2e%2e/etc/passwd /a..%2f..%2f
    /cgi-bin/.%2e/bin/sh /index.php?s=/Index/%5Cthink%5Capp/invokefunction&function=call_user_func_array
    /?x={a}|b^c`d /path\\back /?u=\u00c3\u00bc /\u00c3\u00bc/raw /a?b?c=d /? /;a=b /a%0d%0aX:1 /[x]
    /?a[0]=1 /http://evil/ /@x /:80/ /+ /%20 /a%20b%09 /?a=%26%3D /| /^ /{ /?'""".split()
ODD.append("/?" + "q=%41&" * 500)
AGENTS = ["Mozilla/5.0 (X11; Linux x86_64)", "curl/8.0", "Googlebot/2.1 (+http://www.google.com/bot.html)"]
AGENTS.append("\u00c3\u00bcber-agent/1")
RANGES = "bytes=0-99 bytes=-50 bytes=100- bytes=99999999- bytes=0-1,5-6 items=1-2 bytes=a-b bytes=0-0".split()
FIELDS = [
    ("X-Empty", ""),
    ("X_Under", "1"),
    ("Proxy", "http://evil"),
    ("Content_Length", "5"),
    ("X-Forwarded-For", "6.6.6.6"),
    ("Max-Forwards", "0"),
    ("TE", "gzip"),
    ("Accept-Encoding", ""),
    ("Forwarded", "for=1"),
    ("Priority", "u=1, i"),
    ("Cache-Control", "no-cache"),
    ("Authorization", "Basic " + "x" * 3000),
    ("X-Long", "y" * 7000),
    ("X-Latin", "\u00e9t\u00e9"),
    ("X-Tab", "a\tb"),
    ("Date", "bad"),
    ("If-Range", '"zz"'),
    ("Referer", 'https://localhost/?q=\u00c3\u00bc&r="x"'),
]


@dataclasses.dataclass
class Request:
    method: str
    target: str
    fields: list
    content: bytes | None = None
    # One of length, chunked and expect.
    framing: str = "length"


@dataclasses.dataclass
class Session:
    requests: list
    is_pipelined: bool
    is_http10: bool
    has_absolute_targets: bool


def request(chance):
    fields = [("User-Agent", chance.choice(AGENTS)), ("Accept", "*/*")]
    # The popularity of paths follows a power law.
    target = PATHS[min(int(chance.paretovariate(0.5)) - 1, len(PATHS) - 1)]
    if chance.random() < 0.2:
        target += "?" + "&".join(f"utm_{n}={chance.randrange(1 << 40):x}" for n in range(chance.randrange(1, 40)))
    if chance.random() < 0.15:
        target = chance.choice(ODD)
    if chance.random() < 0.3:
        count = chance.randrange(1, 60)
        fields.append(("Cookie", "; ".join(f"c{n}={chance.randrange(1 << 60):x}" for n in range(count))))
    if chance.random() < 0.4:
        fields.append(("Accept-Encoding", "gzip, deflate, br"))
    if chance.random() < 0.05:
        fields.append(chance.choice(FIELDS))
    if target.startswith("/static"):
        condition = chance.choice(
            [("If-Modified-Since", MODIFIED), ("If-None-Match", '"zz"'), ("If-None-Match", "*"), None, None]
        )
        fields += [condition] if condition else [("Range", chance.choice(RANGES))] * (chance.random() < 0.4)
    kind = chance.random()
    if kind < 0.06:
        return Request("HEAD", target, fields)
    if kind < 0.2:
        content = chance.randbytes(chance.choice([0, 1, 10, 1000, 70_000]))
        fields.append(("Content-Type", "application/x-www-form-urlencoded"))
        framing = chance.choice(["length", "length", "chunked", "expect"])
        return Request(chance.choice(["POST", "POST", "PUT"]), target, fields, content, framing)
    if kind < 0.22:
        return Request(chance.choice(["DELETE", "PATCH", "PROPFIND", "M-SEARCH", "FOO", "OPTIONS"]), target, fields)
    return Request("GET", target, fields)


def sessions(seed, count):
    chance = random.Random(seed)
    for _ in range(count):
        requests = [request(chance) for _ in range(chance.choice([1, 1, 2, 3, 6]))]
        is_http10 = chance.random() < 0.07
        yield Session(requests, chance.random() < 0.15 and not is_http10, is_http10, chance.random() < 0.05)
