"""Runs the cases between our ends and those of others, and prints a table. See run."""

import argparse
import base64
import hashlib
import http.server
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

HERE = Path(__file__).parent
CERTIFICATE, KEY = os.environ["CERTIFICATE"], os.environ["KEY"]
WITNESS, GO, AIOQUIC = os.environ["WITNESS"], os.environ["GO_WITNESS"], os.environ["AIOQUIC"]
PYWEBTRANSPORT = os.environ["PYWEBTRANSPORT"]
COURSER, ROOT = os.environ["COURSER"], os.environ["ROOT"]
CASES = (
    "protocol bi-1 bi-100 bi-1000 uni-1 uni-100 uni-1000 open-1 open-100 open-1000 bulk datagrams reset stop "
    "close-client close-server drain two origin reload restart crash"
).split()
# The cases of a server that accepts the pages of all sites.
NO_ORIGIN = [case for case in CASES if case != "origin"]
# The server ends in order (SIGTERM), or is killed, while a page has a session, and starts again at the same port.
RESTARTS = {"restart": signal.SIGTERM, "crash": signal.SIGKILL}
RELOADS = 50
LONGEST = 300


class Server:
    """A server process, which prints its ports."""

    def __init__(self, command, ports=1):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ports = [self.process.stdout.readline().strip() for _ in range(ports)]
        self.errors = []
        threading.Thread(target=self.collect, daemon=True).start()

    def collect(self):
        for line in self.process.stderr:
            self.errors.append(line.rstrip())

    def stop(self):
        self.process.kill()
        self.process.wait()


class Proxy(Server):
    """`courser serve` that forwards sessions to a port of this machine."""

    def __init__(self, port):
        command = [COURSER, "serve", "--json", "--listen", "127.0.0.1:0", "--cert", CERTIFICATE, "--key", KEY, "--any-host"]
        command += ["--proxy-webtransport", f"https://localhost:{port}", "--proxy-webtransport-ca", ROOT]
        super().__init__(command)
        self.ports = [json.loads(self.ports[0])["addresses"][0].rsplit(":", 1)[1]]
        threading.Thread(target=self.drain, daemon=True).start()

    def drain(self):
        for line in self.process.stdout:
            self.errors.append(line.rstrip())


class Restarted(Server):
    """`courser serve` with an echo, which is ended and started again."""

    def __init__(self, how):
        self.how, self.port = how, 0
        self.start()

    def start(self):
        command = [COURSER, "serve", "--json", "--listen", f"127.0.0.1:{self.port}", "--cert", CERTIFICATE, "--key", KEY]
        command += ["--any-host", "--webtransport-echo", "--webtransport-origin", "*"]
        super().__init__(command)
        self.port = json.loads(self.ports[0])["addresses"][0].rsplit(":", 1)[1]
        threading.Thread(target=Proxy.drain, args=[self], daemon=True).start()

    def restart(self):
        self.process.send_signal(self.how)
        self.process.wait(30)
        self.start()


def lines_of(text):
    rows = {}
    for line in text.splitlines():
        name, word, *rest = line.split("\t")
        rows[name] = (word, rest[0] if rest else "")
    return rows


def program(command):
    """Runs a client that prints its lines."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
        output, errors = done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        output, errors = (late.stdout or b"").decode(), "no end in time"
    rows = lines_of(output)
    if not rows:
        rows["protocol"] = ("FAILED", errors.strip().splitlines()[-1] if errors.strip() else "no output")
    return with_dialect(rows, errors.splitlines())


def with_dialect(rows, errors):
    """Adds the dialect that our end has reported."""
    seen = sorted({line.removeprefix("dialect: ") for line in errors if line.startswith("dialect: ")})
    if seen:
        rows["dialect"] = (", ".join(seen), "")
    return rows


class Page(http.server.BaseHTTPRequestHandler):
    """Serves the page of the cases, and collects its lines."""

    def do_GET(self):
        is_page = self.path.startswith("/?")
        body = (HERE / "page.html").read_bytes() if is_page else b""
        self.send_response(200 if is_page else 404)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        line = self.rfile.read(int(self.headers["content-length"])).decode()
        self.send_response(204)
        self.end_headers()
        if line == "done":
            self.server.done.set()
        elif line == "restart now":
            threading.Thread(target=self.server.restart, daemon=True).start()
        else:
            self.server.lines.append(line)

    def log_message(self, *arguments):
        pass


QUIET = {
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.dns.disableIPv6": True,
    "toolkit.telemetry.enabled": False,
}


def browser_command(name, folder, url):
    if name == "firefox":
        lines = [f'user_pref("{key}", {str(value).lower()});\n' for key, value in QUIET.items()]
        (folder / "user.js").write_text("".join(lines))
        return [shutil.which("firefox-esr"), "--headless", "--no-remote", "--profile", str(folder), url]
    flags = "headless no-sandbox disable-gpu no-first-run disable-background-networking disable-component-update disable-sync"
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return [binary, *(f"--{flag}" for flag in flags.split()), f"--user-data-dir={folder}", url]


def visit(name, query, longest, restart=None):
    """Opens the page in a browser, and returns its lines. `restart` is called when the page asks for it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.lines, server.done, server.restart = [], threading.Event(), restart
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/?{urllib.parse.urlencode(query)}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        folder = Path(folder)
        environment = {**os.environ, "HOME": str(folder)}
        process = subprocess.Popen(
            browser_command(name, folder, url),
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        server.done.wait(longest)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    server.shutdown()
    return lines_of("\n".join(server.lines))


def certificate_hash():
    der = ssl.PEM_cert_to_DER_cert(Path(CERTIFICATE).read_text().split("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n")
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def restarts(name, only):
    """The page survives the restart of its server."""
    rows = {}
    for case, how in RESTARTS.items():
        if only and case not in only:
            continue
        server = Restarted(how)
        query = {"port": server.port, "hash": certificate_hash(), "restart": case}
        rows.update(visit(name, query, 60, server.restart))
        rows.setdefault(case, ("FAILED", "no end in time"))
        server.stop()
    return rows


def browser(name, server, only, ports=None):
    ports = ports or server.ports
    query = {"port": ports[0], "strict": ports[1], "hash": certificate_hash(), "only": ",".join(only)}
    rows = visit(name, query, LONGEST)
    if rows.get("origin", ("", ""))[0] == "ok" and not any("rigin" in line for line in server.errors):
        rows["origin"] = ("FAILED", "the server has not refused the origin")
    if not only or "reload" in only:
        rows.update(visit(name, {**query, "reload": RELOADS}, 120))
        rows.setdefault("reload", ("FAILED", "no end in time"))
    if not rows:
        rows["protocol"] = ("FAILED", "the browser has posted nothing")
    return with_dialect(rows, server.errors)


def differences():
    """Known differences: end, role of that end, case, and the reason."""
    known = {}
    for line in (HERE / "differences.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            end, role, case, reason = line.split("\t")
            known[end, role, case] = reason
    return known


def wanted(names, ends):
    return [name for name in names if not ends or name in ends]


def server_command(name):
    return {
        "courser": [WITNESS, "server", "courser", CERTIFICATE, KEY],
        "wtransport": [WITNESS, "server", "wtransport", CERTIFICATE, KEY],
        "web-transport-quinn": [WITNESS, "server", "web-transport-quinn", CERTIFICATE, KEY],
        "webtransport-go": [GO, "server", CERTIFICATE, KEY] if GO else None,
        "aioquic": [AIOQUIC, str(HERE / "peer.py"), "server", CERTIFICATE, KEY] if AIOQUIC else None,
        "pywebtransport": [PYWEBTRANSPORT, str(HERE / "pywebtransport_peer.py"), CERTIFICATE, KEY] if PYWEBTRANSPORT else None,
    }[name]


# Clients and servers with proxies between them.
CHAINS = (
    ("chromium", 1, "courser"),
    ("chromium", 1, "webtransport-go"),
    ("chromium", 1, "wtransport"),
    ("firefox", 1, "webtransport-go"),
    ("wtransport", 1, "courser"),
    ("web-transport-quinn", 1, "courser"),
    ("webtransport-go", 1, "courser"),
    ("courser", 1, "aioquic"),
    ("courser", 2, "courser"),
    ("wtransport", 2, "webtransport-go"),
)


def proxied(only, ends):
    """Others as both ends, with one or two of our proxies between them."""
    for client, hops, server in CHAINS:
        name = " > ".join([client, *["proxy"] * hops, server])
        if ends and client not in ends and server not in ends:
            continue
        command = server_command(server)
        is_browser = client in ("chromium", "firefox")
        missing = is_browser and browser_command(client, Path(tempfile.gettempdir()), "")[0] is None
        if command is None or missing or (client == "webtransport-go" and not GO):
            yield name, None
            continue
        running = [Server(command, 2 if server == "courser" else 1)]
        for _ in range(hops):
            running.append(Proxy(running[-1].ports[0]))
        port = running[-1].ports[0]
        if is_browser:
            if server == "courser":
                # The second port accepts pages of its own host only, which the proxy leaves to it.
                running.append(Proxy(running[0].ports[1]))
                rows = browser(client, running[0], only, [port, running[-1].ports[0]])
            else:
                rows = browser(client, running[0], only or NO_ORIGIN, [port, port])
        else:
            first = [GO, "client"] if client == "webtransport-go" else [WITNESS, "client", client]
            rows = program([*first, port, *only])
        for it in reversed(running):
            it.stop()
        yield name, rows


def clients(only, ends):
    """Others as clients of our server."""
    own = [WITNESS, "server", "courser", CERTIFICATE, KEY]
    for name in wanted(["chromium", "firefox"], ends):
        if browser_command(name, Path(tempfile.gettempdir()), "")[0] is None:
            yield name, None
            continue
        server = Server(own, 2)
        rows = {} if only and RESTARTS.keys() >= set(only) else browser(name, server, only)
        server.stop()
        yield name, {**rows, **restarts(name, only)}
    for name in wanted(["courser", "wtransport", "web-transport-quinn", "webtransport-go"], ends):
        if name == "webtransport-go" and not GO:
            yield name, None
            continue
        server = Server(own, 2)
        command = [GO] if name == "webtransport-go" else [WITNESS]
        command += ["client", *([] if name == "webtransport-go" else [name]), server.ports[0], *only]
        yield name, with_dialect(program(command), server.errors)
        server.stop()


def servers(only, ends):
    """Others as servers of our client."""
    names = ["wtransport", "web-transport-quinn", "webtransport-go", "aioquic", "pywebtransport"]
    for name in wanted(names, ends):
        command = server_command(name)
        if command is None:
            yield name, None
            continue
        server = Server(command)
        yield name, program([WITNESS, "client", "courser", server.ports[0], *only])
        server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="cases, separated by commas")
    parser.add_argument("--ends", default="", help="ends, separated by commas")
    parser.add_argument("--role", choices=["client", "server", "both"], help="role of the others; both through our proxy")
    parser.add_argument("--guide", help="page whose table of dialects is written")
    parser.add_argument("--results", help="file for the table")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    ends = [name for name in options.ends.split(",") if name]
    known, table, failed = differences(), [], 0
    roles = [("client", clients), ("server", servers), ("both", proxied)]
    for role, pairs in roles if not options.role else [it for it in roles if it[0] == options.role]:
        for name, rows in pairs(only, ends):
            if rows is None:
                print(f"{name} as {role}: SKIPPED", flush=True)
                continue
            cells = {}
            for case, (word, text) in rows.items():
                reason = known.get((name, role, case))
                mark = word
                if word == "FAILED" and reason:
                    mark = f"no: {reason}"
                elif word == "FAILED":
                    failed += 1
                elif word == "ok" and reason:
                    print(f"{name} as {role}: {case} works, contrary to differences.tsv", flush=True)
                cells[case] = mark
                print(f"{name} as {role}: {case}: {mark if mark != 'FAILED' else 'FAILED: ' + text}", flush=True)
            table.append((name, role, rows.get("protocol", ("", ""))[1], cells))
    if options.results:
        write(Path(options.results), table)
    if options.guide:
        write_guide(Path(options.guide), table)
    print(f"{failed} unexpected failures")
    sys.exit(min(failed, 1))


def write_guide(path, table):
    """Writes the table of the guide between its marks. Ends that were not run keep their row."""
    seen = {name: cells["dialect"] for name, role, _, cells in table if role != "both" and "dialect" in cells}
    begin, end = "<!-- begin of the table of dialects -->\n", "<!-- end of the table of dialects -->"
    text = path.read_text()
    before, _, rest = text.partition(begin)
    old, _, after = rest.partition(end)
    rows = {line.split(" | ")[0]: line for line in old.splitlines()}
    lines = ["| client or server | dialect | limits |", "|---|---|---|"]
    for line in (HERE / "ends.tsv").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, label, note = line.split("\t")
        dialect = seen.get(name, "").replace("draft-", "draft ")
        lines.append(f"| {label} | {dialect} | {note} |" if dialect else rows.get(f"| {label}", f"| {label} | not run | {note} |"))
    path.write_text(before + begin + "\n".join(lines) + "\n" + end + after)


def write(path, table):
    """Writes the tables of a run."""
    notes = []
    lines = [
        "# WebTransport with others",
        "",
        f"Written by `interop/webtransport/run --results` on {time.strftime('%Y-%m-%d')}. Each column is another end in its role, and ours has",
        "the other one. `-`: the end has no such case. Numbers are explained below.",
        "",
    ]
    direct = [(f"{name} ({role})", cells) for name, role, _, cells in table if role != "both"]
    lines += rows_of(direct, notes)
    through = [(name, cells) for name, role, _, cells in table if role == "both"]
    if through:
        lines += ["", "## Through `courser serve --proxy-webtransport`", "", "Client, proxies and server of each column:", ""]
        lines += rows_of(through, notes)
    lines += [""] + [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    path.write_text("\n".join(lines) + "\n")


def rows_of(columns, notes):
    lines = ["| case | " + " | ".join(name for name, _ in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for case in ["dialect", *CASES]:
        row = []
        for _, cells in columns:
            mark = cells.get(case, "-")
            if mark.startswith("no: "):
                note = mark.removeprefix("no: ")
                if note not in notes:
                    notes.append(note)
                mark = f"no ({notes.index(note) + 1})"
            row.append({"none": "-"}.get(mark, mark))
        lines.append(f"| {case} | " + " | ".join(row) + " |")
    return lines


if __name__ == "__main__":
    main()
