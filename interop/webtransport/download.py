"""Downloads of a page by a request and over a session. See download."""

import argparse
import base64
import hashlib
import http.server
import os
import shutil
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from pathlib import Path

CERTIFICATE, KEY, ROOT, WITNESS = (os.environ[name] for name in ("CERTIFICATE", "KEY", "ROOT", "WITNESS"))
LONGEST = 300
QUIET = {
    "app.update.enabled": "false",
    "browser.shell.checkDefaultBrowser": "false",
    "datareporting.policy.dataSubmissionEnabled": "false",
    "network.captive-portal-service.enabled": "false",
    "network.connectivity-service.enabled": "false",
    "network.dns.disableIPv6": "true",
    "network.http.http3.disable_when_third_party_roots_found": "false",
    "toolkit.telemetry.enabled": "false",
}


class Log(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        line = self.rfile.read(int(self.headers["content-length"])).decode()
        self.send_response(204)
        self.end_headers()
        if line == "done":
            self.server.done.set()
        else:
            self.server.lines.append(line.split("\t"))

    def log_message(self, *arguments):
        pass


def chromium(folder, port, url):
    public = subprocess.run(["openssl", "x509", "-in", CERTIFICATE, "-pubkey", "-noout"], capture_output=True, check=True)
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=public.stdout, capture_output=True, check=True)
    spki = base64.b64encode(hashlib.sha256(der.stdout).digest()).decode()
    flags = "headless no-sandbox disable-gpu no-first-run disable-background-networking disable-component-update disable-sync"
    return [
        shutil.which("chromium"),
        *(f"--{flag}" for flag in flags.split()),
        # The server listens at this address only, and Chromium tries no other over QUIC.
        "--host-resolver-rules=MAP localhost 127.0.0.1",
        f"--origin-to-force-quic-on=localhost:{port}",
        f"--ignore-certificate-errors-spki-list={spki}",
        f"--user-data-dir={folder}",
        url,
    ]


def firefox(folder, port, url):
    settings = {**QUIET, "network.http.http3.alt-svc-mapping-for-testing": f'"localhost;h3=:{port}"'}
    (folder / "user.js").write_text("".join(f'user_pref("{key}", {value});\n' for key, value in settings.items()))
    database = f"sql:{folder}"
    subprocess.run(["certutil", "-N", "-d", database, "--empty-password"], check=True)
    subprocess.run(["certutil", "-A", "-d", database, "-n", "root", "-t", "CT,,", "-i", ROOT], check=True)
    return [shutil.which("firefox-esr"), "--headless", "--no-remote", "--profile", str(folder), url]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--browser", choices=("chromium", "firefox"), default="chromium")
    parser.add_argument("--bytes", type=int, default=200_000_000)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    server = subprocess.Popen(
        [WITNESS, "server", "courser", CERTIFICATE, KEY], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    port = server.stdout.readline().strip()
    log = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Log)
    log.done, log.lines = threading.Event(), []
    threading.Thread(target=log.serve_forever, daemon=True).start()
    chain = ssl.PEM_cert_to_DER_cert(Path(CERTIFICATE).read_text())
    query = urllib.parse.urlencode(
        {
            "bytes": options.bytes,
            "pairs": options.pairs,
            "hash": base64.b64encode(hashlib.sha256(chain).digest()).decode(),
            "log": f"http://127.0.0.1:{log.server_port}/",
        }
    )
    folder = Path(tempfile.mkdtemp())
    command = {"chromium": chromium, "firefox": firefox}[options.browser]
    command = command(folder, port, f"https://localhost:{port}/download?{query}")
    environment = {**os.environ, "HOME": str(folder)}
    browser = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    in_time = log.done.wait(LONGEST)
    os.killpg(browser.pid, signal.SIGKILL)
    server.kill()
    shutil.rmtree(folder, ignore_errors=True)
    seconds = {"request": [], "session": []}
    for name, value in log.lines:
        if name in seconds:
            seconds[name].append(float(value))
        else:
            print(f"{name}: {value}")
    if not in_time or not seconds["session"]:
        sys.exit("no result in time")
    for name, values in seconds.items():
        speeds = [options.bytes * 8 / value / 1e6 for value in values]
        print(f"{name}: {statistics.median(speeds):.0f} Mbit/s ({min(speeds):.0f} to {max(speeds):.0f})")
    ratios = [request / session for request, session in zip(*seconds.values())]
    ratio = statistics.median(ratios)
    print(f"session to request: {ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    sys.exit(ratio < 0.95)


main()
