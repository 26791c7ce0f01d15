"""The seven cases of WebTransport of the interop runner: runner.py [--repeat N] [--results FILE].

Both ends get TESTCASE, REQUESTS and PROTOCOLS as in the runner. $COURSER names the binary, and $GO_CLIENT and $GO_SERVER the
two programs in the module of webtransport-go. These have fixed paths (/www, /downloads, /certs, /logs) and a fixed port, so each end
gets a file system of its own, and all of them a network. Needs root on Linux. Ends with 1 if a case fails."""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COURSER = os.environ["COURSER"]
GO = {"client": os.environ.get("GO_CLIENT"), "server": os.environ.get("GO_SERVER")}
CERTIFICATE, KEY = os.environ["CERTIFICATE"], os.environ["KEY"]
LONGEST = 60
WAYS = {"U": "unidirectional", "B": "bidirectional", "D": "datagram"}
CASES = ["H", "UR", "US", "BR", "BS", "DR", "DS"]
# Mounts the folders of an end over a copy-on-write view of the machine.
ENTER = """
set -e
mount -t tmpfs tmpfs "$BASE/view"
mkdir "$BASE/view/upper" "$BASE/view/work" "$BASE/view/root"
root=$BASE/view/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$BASE/view/upper,workdir=$BASE/view/work" "$root"
for folder in www downloads certs logs; do
    mkdir -p "$root/$folder"
    mount --bind "$BASE/$folder" "$root/$folder"
done
exec chroot "$root" "$@"
"""


class End:
    """One end of a run, with folders of its own."""

    def __init__(self, name, role, folder):
        self.name, self.role, self.folder = name, role, folder / role
        for each in ("www/endpoint", "downloads", "certs", "logs", "view"):
            (self.folder / each).mkdir(parents=True)
        shutil.copy(CERTIFICATE, self.folder / "certs/cert.pem")
        shutil.copy(KEY, self.folder / "certs/priv.key")

    def start(self, test, requests, protocols):
        command = [COURSER, "interop", self.role] if self.name == "courser" else [GO[self.role]]
        environment = {"PATH": os.environ["PATH"], "TESTCASE": test, "REQUESTS": " ".join(requests), "PROTOCOLS": protocols}
        environment |= {"ROLE": self.role, "BASE": str(self.folder)}
        with (self.folder / "logs/output.txt").open("w") as output:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "bash", "-c", ENTER, "enter", *command], env=environment, stdout=output, stderr=output
            )

    def output(self):
        return (self.folder / "logs/output.txt").read_text(errors="replace").strip().splitlines()[-1:]

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def listens():
    """True if a socket of this network has the port 443."""
    tables = [Path(f"/proc/net/udp{six}") for six in ("", "6")]
    return any(":01BB " in line for table in tables for line in table.read_text().splitlines())


def files_of(case):
    sizes = (200, 500, 800, 900, 1000) if case[0] == "D" else (1, 10_000, 500_000, 1_000_000)
    return {f"file-{number}": random.randbytes(size) for number, size in enumerate(sizes)}


def run(client_name, server_name, case, folder):
    """Runs a case once. Returns None, or why it fails."""
    client, server = End(client_name, "client", folder), End(server_name, "server", folder)
    files = {} if case == "H" else files_of(case)
    sender, receiver = (server, client) if case[1:] == "R" else (client, server)
    for name, content in files.items():
        (sender.folder / "www/endpoint" / name).write_bytes(content)
    tests = {"client": "handshake", "server": "handshake"}
    requests = {"client": ["https://localhost:443/endpoint"], "server": []}
    if case != "H":
        suffix = "receive" if receiver is client else "send"
        tests[sender.role], tests[receiver.role] = "transfer", f"transfer-{WAYS[case[0]]}-{suffix}"
        before = "https://localhost:443/" if receiver is client else "/"
        requests[receiver.role] = [f"{before}endpoint/{name}" for name in files]
    server.start(tests["server"], requests["server"], "two three")
    try:
        until = time.monotonic() + 10
        while not listens():
            if time.monotonic() > until or server.process.poll() is not None:
                return f"the server does not listen: {server.output()}"
            time.sleep(0.02)
        client.start(tests["client"], requests["client"], "one two three")
        try:
            code = client.process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            return f"no end within {LONGEST} s: {client.output()}"
        finally:
            client.stop()
        if code:
            return f"the client ends with {code}: {client.output()}"
        until = time.monotonic() + 5
        while (why := judge(client, server, receiver, files)) and time.monotonic() < until:
            time.sleep(0.1)
        return why
    finally:
        server.stop()


def judge(client, server, receiver, files):
    if not files:
        chosen = [end.folder / "downloads/negotiated_protocol.txt" for end in (client, server)]
        names = [path.read_text().strip() if path.exists() else None for path in chosen]
        return None if names == ["two", "two"] else f"protocols {names}"
    for name, content in files.items():
        path = receiver.folder / "downloads/endpoint" / name
        if not path.exists() or path.read_bytes() != content:
            return f"{name} has not arrived"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--results")
    options = parser.parse_args()
    if not os.environ.get("IN_NETWORK"):
        enter = 'ip link set lo up && exec "$@"'
        command = ["unshare", "--net", "bash", "-c", enter, "enter", sys.executable, *sys.argv]
        sys.exit(subprocess.call(command, env={**os.environ, "IN_NETWORK": "1"}))
    names = ["courser", *(["webtransport-go"] if GO["client"] and GO["server"] else [])]
    rows, failed = [], 0
    for server in names:
        for client in names:
            cells = []
            for case in options.cases.split(","):
                passed = 0
                for _ in range(options.repeat):
                    with tempfile.TemporaryDirectory() as folder:
                        why = run(client, server, case, Path(folder))
                    passed += why is None
                    if why:
                        print(f"{client} to {server}: {case}: {why}", flush=True)
                cells.append(f"{passed}/{options.repeat}")
                failed += passed < options.repeat and "courser" in (client, server)
            rows.append([server, client, *cells])
            print(*rows[-1], flush=True)
    if options.results:
        write(Path(options.results), options.cases.split(","), rows)
    sys.exit(min(failed, 1))


def write(path, cases, rows):
    lines = [
        "# The cases of WebTransport of the interop runner",
        "",
        f"Written by `interop/webtransport/runner --results` on {time.strftime('%Y-%m-%d')}: runs that have passed, of all runs. H: handshake with a",
        "protocol; U, B, D: files in unidirectional streams, bidirectional streams, datagrams; R: the client receives, S: it sends.",
        "",
        "| server | client | " + " | ".join(cases) + " |",
        "|---" * (len(cases) + 2) + "|",
    ]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
