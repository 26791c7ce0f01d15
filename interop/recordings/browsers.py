"""Browsers without a window, set up for one server on loopback: over HTTP/3 on a port, or over HTTP/2."""

import base64
import hashlib
import os
import shutil
import subprocess
import tempfile


class Browser:
    """A running browser with a profile of its own."""

    def __init__(self, command, profile):
        self.profile = profile
        version = subprocess.run([command[0], "--version"], capture_output=True, text=True)
        self.version = " ".join(version.stdout.split())
        log = open(os.path.join(profile, "log"), "wb")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "HOME": profile, "MOZ_HEADLESS": "1"},
        )

    def stop(self):
        try:
            os.killpg(self.process.pid, 15)
            self.process.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, 9)
        shutil.rmtree(self.profile, ignore_errors=True)


def spki_of(certificate):
    pem = subprocess.run(["openssl", "x509", "-in", certificate, "-pubkey", "-noout"],
                         check=True, capture_output=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=pem,
                         check=True, capture_output=True).stdout
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def chromium(url, port, certificate, _root):
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not program:
        return None
    profile = tempfile.mkdtemp(prefix="courser-chromium-")
    return Browser([
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-popup-blocking", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP localhost 127.0.0.1",
        f"--origin-to-force-quic-on=localhost:{port}" if port else "--disable-quic",
        f"--ignore-certificate-errors-spki-list={spki_of(certificate)}",
        "--window-size=1200,900", url,
    ], profile)


def firefox(url, port, _certificate, root):
    program = os.environ.get("FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
    certutil = shutil.which("certutil")
    if not program or not certutil:
        return None
    profile = tempfile.mkdtemp(prefix="courser-firefox-")
    subprocess.run([certutil, "-N", "-d", f"sql:{profile}", "--empty-password"], check=True)
    subprocess.run([certutil, "-A", "-d", f"sql:{profile}", "-n", "root", "-t", "C,,", "-i", root],
                   check=True)
    settings = {
        "network.http.http3.enable": bool(port),
        "network.http.http3.alt-svc-mapping-for-testing": f'localhost;h3=":{port}"' if port else "",
        "network.http.http3.disable_when_third_party_roots_found": False,
        "network.dns.localDomains": "localhost",
        "network.dns.disableIPv6": True,
        "dom.disable_open_during_load": False,
        "dom.popup_maximum": 1000,
        "browser.shell.checkDefaultBrowser": False,
        "browser.aboutwelcome.enabled": False,
        "datareporting.policy.dataSubmissionEnabled": False,
        "toolkit.telemetry.enabled": False,
        "app.update.enabled": False,
        "network.captive-portal-service.enabled": False,
        "network.connectivity-service.enabled": False,
    }
    with open(os.path.join(profile, "user.js"), "w") as file:
        for name, value in settings.items():
            text = {True: "true", False: "false"}.get(value) if isinstance(value, bool) else (
                str(value) if isinstance(value, int) else "'" + value.replace("'", "\\'") + "'")
            file.write(f'user_pref("{name}", {text});\n')
    return Browser([program, "--headless", "--no-remote", "--profile", profile, url], profile)
