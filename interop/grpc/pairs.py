"""Clients and servers of gRPC's interoperability tests in pairs. Started by `run`."""

import argparse
import os
import pathlib
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
OWN, COURSER, EXAMPLES = (os.environ[name] for name in ("OWN", "COURSER", "EXAMPLES"))
ROOT, CERTIFICATE, KEY = (os.environ[name] for name in ("ROOT", "CERTIFICATE", "KEY"))
CASES = """empty_unary large_unary client_streaming server_streaming ping_pong empty_stream custom_metadata
    status_code_and_message special_status_message unimplemented_method unimplemented_service cancel_after_begin
    cancel_after_first_response timeout_on_sleeping_server""".split()
# What the servers of Go and Python do not check.
COMPRESSED = """client_compressed_unary server_compressed_unary client_compressed_streaming
    server_compressed_streaming""".split()
started = []


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def launch(command, port):
    """Starts a server and waits until it listens."""
    log = open(f"{OWN}/server.log", "ab")
    process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    started.append(process)
    for _ in range(200):
        if process.poll() is not None:
            raise RuntimeError(f"{command[0]} ends: see {OWN}/server.log")
        for host in ("127.0.0.1", "::1"):
            try:
                socket.create_connection((host, port), 1).close()
                return
            except OSError:
                pass
        time.sleep(0.1)
    raise RuntimeError(f"{command[0]} does not listen")


def stop():
    for process in started:
        process.terminate()
    for process in started:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
    started.clear()


def behind(port):
    """Puts `courser serve` in front of a server without TLS, and returns its port."""
    edge = free_port()
    files = ["--cert", CERTIFICATE, "--key", KEY]
    launch([COURSER, "serve", "--listen", f"127.0.0.1:{edge}", *files, "--proxy", f"h2c://localhost:{port}"], edge)
    return edge


# Servers: each returns its port, which has TLS.


def courser_server():
    port = free_port()
    launch([f"{EXAMPLES}/interop_server", f"127.0.0.1:{port}", CERTIFICATE, KEY], port)
    return port


def go_server():
    port = free_port()
    launch([f"{OWN}/server", f"-port={port}"], port)
    return behind(port)


def python_server():
    port = free_port()
    launch([sys.executable, f"{HERE}/peer.py", "server", str(port)], port)
    return behind(port)


# Clients: each runs the cases, and returns the ones that failed with their last line.


def failed(command):
    try:
        done = subprocess.run(command, capture_output=True, timeout=180)
    except subprocess.TimeoutExpired:
        return "it takes three minutes"
    text = (done.stderr or done.stdout).decode(errors="replace").strip()
    return text.splitlines()[-1][-200:] if done.returncode and text else done.returncode and "no text"


def courser_client(version):
    def run(port, cases):
        command = [f"{EXAMPLES}/interop_client", f"https://localhost:{port}", ROOT, version, *cases]
        return failed(command)

    return run


def go_client(port, cases):
    flags = ["-use_tls", "-use_test_ca", f"-ca_file={ROOT}", "-server_host=localhost"]
    for case in cases:
        command = [f"{OWN}/client", *flags, "-server_host_override=localhost", f"-server_port={port}", f"-test_case={case}"]
        if error := failed(command):
            return f"{case}: {error}"
    return None


def python_client(port, cases):
    return failed([sys.executable, f"{HERE}/peer.py", "client", ROOT, f"localhost:{port}", *cases])


SERVERS = {"courser": courser_server, "Go": go_server, "Python": python_server}
CLIENTS = {
    "courser HTTP/3": courser_client("h3"),
    "courser HTTP/2": courser_client("h2"),
    "Go": go_client,
    "Python": python_client,
}


def is_missing(client, server):
    needs = [f"{OWN}/client"] * (client == "Go") + [f"{OWN}/server"] * (server == "Go")
    return any(not os.path.exists(it) for it in needs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", help="words that the names of the pairs contain, separated by commas")
    only = parser.parse_args().only
    words = only.split(",") if only else [""]
    is_good = True
    for server, start in SERVERS.items():
        for client, run in CLIENTS.items():
            name = f"client {client}, server {server}"
            if not any(word in name for word in words):
                continue
            cases = CASES + (COMPRESSED if server == "courser" and client.startswith("courser") else [])
            if is_missing(client, server):
                print(f"{name:<40} SKIPPED: no grpc-go", flush=True)
                continue
            try:
                error = run(start(), cases)
            except (RuntimeError, OSError) as exception:
                error = exception
            finally:
                stop()
            is_good &= not error
            print(f"{name:<40} {f'FAILED: {error}' if error else f'{len(cases)} cases passed'}", flush=True)
    sys.exit(0 if is_good else 1)


main()
