"""Replays sessions through `courser serve --proxy` and nginx, and compares the answers. Started by `run`."""

import argparse
import asyncio
import collections
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import clients
import traffic

HERE = pathlib.Path(__file__).parent
OWN, COURSER, ROOT, CERTIFICATE, KEY = (os.environ[name] for name in ("OWN", "COURSER", "ROOT", "CERTIFICATE", "KEY"))
# Fields that belong to one hop or name the server.
HOP = "date server alt-svc via connection keep-alive transfer-encoding content-length x-seen".split()
HOP += "x-forwarded-for x-forwarded-host x-forwarded-proto forwarded x-request-id host".split()
# Differences with their reasons: the beginning of the description, and why courser is right.
REASONS = {
    "fields at the origin {('proxy'": "CGI programs take the field Proxy for HTTP_PROXY, so courser removes it",
}
started = []


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def launch(command, port):
    """Starts a server and waits until it listens."""
    with open(f"{OWN}/server.log", "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    started.append(process)
    for _ in range(200):
        if process.poll() is not None:
            raise RuntimeError(f"{command[0]} ends: see {OWN}/server.log")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"{command[0]} does not listen")


def stop(process):
    started.remove(process)
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def start_origin(port):
    return launch([sys.executable, str(HERE / "origin.py"), str(port)], port)


def start_courser(origin):
    port = free_port()
    command = [COURSER, "serve", "--listen", f"127.0.0.1:{port}", "--cert", CERTIFICATE, "--key", KEY]
    launch([*command, "--proxy", f"http://127.0.0.1:{origin}"], port)
    return port


def start_nginx(origin):
    name = os.environ.get("NGINX") or "nginx"
    nginx = shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
    if not nginx:
        return None
    port = free_port()
    temporary = "".join(
        f"{name}_temp_path {OWN}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = f"""daemon off; pid {OWN}/nginx.pid; error_log {OWN}/nginx.log; worker_processes 1;
events {{ worker_connections 1000; }}
http {{
    access_log off; {temporary}
    upstream origin {{ server 127.0.0.1:{origin}; keepalive 16; }}
    server {{
        listen 127.0.0.1:{port} ssl http2; client_max_body_size 0;
        ssl_certificate {CERTIFICATE}; ssl_certificate_key {KEY};
        location / {{
            proxy_pass http://origin; proxy_http_version 1.1; proxy_request_buffering off;
            proxy_set_header Host $http_host; proxy_set_header Connection "";
        }}
    }}
}}
"""
    path = pathlib.Path(OWN, "nginx.conf")
    path.write_text(text)
    launch([nginx, "-c", str(path)], port)
    return port


def report_of(content):
    """Returns what the origin has received, if the content says so."""
    try:
        report = json.loads(content)
        report["fields"] = sorted(tuple(field) for field in report["fields"] if field[0] not in HOP)
        return report
    except (ValueError, KeyError, TypeError):
        return None


def joined(fields):
    """Joins cookies, which HTTP/2 splits and which nginx does not join over HTTP/1.1."""
    cookies = [value for name, value in fields if name == "cookie"]
    others = [field for field in fields if field[0] != "cookie"]
    return others + [("cookie", "; ".join(cookies))] * bool(cookies)


def differences(ours, theirs):
    """Yields what differs between two answers."""
    if ours.status != theirs.status:
        yield f"status {ours.status} not {theirs.status}"
        return
    pairs = [sorted(field for field in answer.fields if field[0] not in HOP) for answer in (ours, theirs)]
    for name, value in set(pairs[0]) ^ set(pairs[1]):
        yield f"field {name}: {value[:60]!r} on one side"
    reports = [report_of(answer.content) for answer in (ours, theirs)]
    if None in reports:
        # Error pages differ, as each server writes its own.
        if ours.content != theirs.content and ours.status not in (400, 502):
            yield f"content of {len(ours.content)} not {len(theirs.content)} bytes"
        return
    for name in ("method", "target", "content"):
        if reports[0][name] != reports[1][name]:
            yield f"{name} at the origin {reports[0][name]!r} not {reports[1][name]!r}"
    if joined(reports[0]["fields"]) != joined(reports[1]["fields"]):
        yield f"fields at the origin {set(reports[0]['fields']) ^ set(reports[1]['fields'])}"


async def replay(version, seed, count, ours, theirs):
    """Returns the number of requests, and the differences with how often they occur and an example of each."""
    room, seen, examples = asyncio.Semaphore(8), collections.Counter(), {}
    # nginx of distributions has no HTTP/3.
    reference = clients.VERSIONS["HTTP/2" if version == "HTTP/3" else version]
    requests = 0

    async def one(session):
        nonlocal requests
        async with room:
            first = await clients.VERSIONS[version](ours, session, ROOT)
            second = await reference(theirs, session, ROOT)
        requests += len(session.requests)
        if len(first) != len(second):
            seen["number of answers"] += 1
            examples["number of answers"] = session
        for request, answer, other in zip(session.requests, first, second):
            for difference in differences(answer, other):
                seen[difference] += 1
                examples.setdefault(difference, f"{request.method} {request.target[:80]}")

    await asyncio.gather(*(one(session) for session in traffic.sessions(seed, count)))
    return requests, seen, examples


def replays(seed, count, ours, theirs):
    is_good = True
    for version in clients.VERSIONS:
        requests, seen, examples = asyncio.run(replay(version, seed, count, ours, theirs))
        unknown = 0
        for difference, times in seen.most_common():
            reason = next((why for words, why in REASONS.items() if difference.startswith(words)), None)
            unknown += times * (reason is None)
            print(f"    {times} {difference}: {reason or f'NO REASON, as in {examples[difference]}'}")
        is_good = is_good and not unknown
        print(f"{version:<10} {requests} requests, {unknown} differences without a reason", flush=True)
    return is_good


async def requests_until(end, port, outcomes):
    while time.monotonic() < end:
        session = traffic.Session([traffic.Request("GET", "/", [])], False, False, False)
        answer = (await clients.http1(port, session, ROOT))[0]
        outcomes[answer.status] += 1


def restarts(port, origin_port, origin):
    """Restarts the origin each second while eight clients send requests."""

    async def run():
        nonlocal origin
        outcomes, end = collections.Counter(), time.monotonic() + 6
        working = [asyncio.create_task(requests_until(end, port, outcomes)) for _ in range(8)]
        while time.monotonic() < end - 1:
            await asyncio.sleep(1)
            await asyncio.to_thread(stop, origin)
            origin = await asyncio.to_thread(start_origin, origin_port)
        await asyncio.gather(*working)
        return outcomes

    return asyncio.run(run())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--sessions", type=int, default=300)
    arguments = parser.parse_args()
    origin_port = free_port()
    try:
        origin = start_origin(origin_port)
        ours, theirs = start_courser(origin_port), start_nginx(origin_port)
        if theirs is None:
            print("skipped: nginx is needed", file=sys.stderr)
            sys.exit(77)
        is_good = replays(arguments.seed, arguments.sessions, ours, theirs)
        outcomes = restarts(ours, origin_port, origin)
        print(f"restarts   {dict(outcomes)}")
        # A request on a new connection, which the origin drops when it ends, is not repeated.
        is_good = is_good and outcomes[200] > 0.99 * outcomes.total()
    finally:
        for process in list(started):
            stop(process)
    sys.exit(0 if is_good else 1)


main()
