"""Foreign programs as upstream servers, clients and proxies of `courser serve`. Started by `run`."""

import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "recordings"))
import browsers  # noqa: E402

OWN, BIN, COURSER, SITE = (os.environ[name] for name in ("OWN", "BIN", "COURSER", "SITE"))
ROOT, CERTIFICATE, KEY = (os.environ[name] for name in ("ROOT", "CERTIFICATE", "KEY"))
results = []
started = []


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def written(name, text):
    pathlib.Path(OWN, name).write_text(text)
    return f"{OWN}/{name}"


def program(variable, name):
    return shutil.which(os.environ.get(variable) or name) or shutil.which(f"/usr/sbin/{name}")


def launch(command, port):
    """Starts a server and waits until it listens."""
    log = open(f"{OWN}/server.log", "ab")
    process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=HERE)
    started.append(process)
    for _ in range(200):
        if process.poll() is not None:
            raise RuntimeError(f"{command[0]} ends: see {OWN}/server.log")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{command[0]} does not listen")


def serve(*arguments, port=None):
    """Starts `courser serve` and returns its port."""
    port = port or free_port()
    command = [COURSER, "serve", "--listen", f"127.0.0.1:{port}", "--cert", CERTIFICATE]
    launch([*command, "--key", KEY, *arguments], port)
    return port


def stop():
    for process in started:
        process.terminate()
    for process in started:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
    started.clear()


def said(command, **more):
    done = subprocess.run(command, capture_output=True, timeout=120, cwd=HERE, **more)
    if done.returncode:
        text = (done.stderr or done.stdout).decode(errors="replace").strip()[-300:]
        raise RuntimeError(f"exit code {done.returncode}: {text}")
    return done.stdout.decode(errors="replace")


def expect(what, seen, expected):
    if seen != expected:
        raise RuntimeError(f"{what}: {seen!r}, not {expected!r}")


def get(version, port, *arguments):
    url = f"https://localhost:{port}/a%2fb?c=d"
    flag = {"1": "--http1.1", "2": "--http2", "3": "--http3-only"}[version]
    command = [COURSER, "get", flag, "-4", "-s", "-S", "-f", "--cacert", ROOT, *arguments, url]
    return said(command)


# Upstream servers: a function that starts one and returns its port, for each of http and h2c.


def nginx_upstream(scheme):
    nginx = program("NGINX", "nginx")
    if not nginx:
        return None
    port = free_port()
    protocol = "http2" if scheme == "h2c" else ""
    text = f"""daemon off; pid {OWN}/nginx.pid; error_log {OWN}/nginx.log; worker_processes 1;
events {{}}
http {{
    access_log off; client_body_temp_path {OWN}/nginx-body; proxy_temp_path {OWN}/nginx-proxy;
    fastcgi_temp_path {OWN}/nginx-f; uwsgi_temp_path {OWN}/nginx-u; scgi_temp_path {OWN}/nginx-s;
    server {{
        listen 127.0.0.1:{port} {protocol};
        location / {{ return 200 "$request_method $request_uri host=$host\\n"; }}
    }}
}}
"""
    launch([nginx, "-c", written("nginx.conf", text)], port)
    return port


def caddy_upstream(scheme):
    port = free_port()
    protocol = "h2c" if scheme == "h2c" else "h1"
    text = f"""{{
    admin off
    auto_https off
    storage file_system {OWN}/caddy
    servers {{
        protocols h1 {protocol if protocol != "h1" else ""}
    }}
}}
http://:{port} {{
    respond "{{http.request.method}} {{http.request.orig_uri}} host={{http.request.host}}
"
}}
"""
    path = written("Caddyfile", text)
    launch([f"{BIN}/caddy", "run", "--config", path, "--adapter", "caddyfile"], port)
    return port


def haproxy_upstream(scheme):
    haproxy = program("HAPROXY", "haproxy")
    if not haproxy:
        return None
    port = free_port()
    proto = "proto h2" if scheme == "h2c" else ""
    text = f"""defaults
    mode http
    timeout client 20s
    timeout server 20s
    timeout connect 5s
frontend all
    bind 127.0.0.1:{port} {proto}
    http-request return status 200 content-type text/plain lf-string "%[method] %[pathq] host=%[req.hdr(host)]\\n"
"""
    launch([haproxy, "-f", written("haproxy.conf", text)], port)
    return port


def envoy_config(listeners, clusters):
    return json.dumps({"static_resources": {"listeners": listeners, "clusters": clusters}})


TYPES = "type.googleapis.com/envoy.extensions"


def envoy_listener(port, tls=None):
    manager = {
        "@type": f"{TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "edge",
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "origin"}}],
                }
            ]
        },
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{TYPES}.filters.http.router.v3.Router"},
            }
        ],
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    where = {"address": "127.0.0.1", "port_value": port}
    return {"name": "edge", "address": {"socket_address": where}, "filter_chains": [{"filters": filters}]}


def envoy_cluster(port, is_http2, is_tls):
    ends = [{"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}}]
    cluster = {
        "name": "origin",
        "type": "STATIC",
        "load_assignment": {"cluster_name": "origin", "endpoints": [{"lb_endpoints": ends}]},
    }
    if is_http2:
        options = {
            "@type": f"{TYPES}.upstreams.http.v3.HttpProtocolOptions",
            "explicit_http_config": {"http2_protocol_options": {}},
        }
        name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
        cluster["typed_extension_protocol_options"] = {name: options}
    if is_tls:
        context = {
            "@type": f"{TYPES}.transport_sockets.tls.v3.UpstreamTlsContext",
            "sni": "localhost",
            "common_tls_context": {
                "alpn_protocols": ["h2" if is_http2 else "http/1.1"],
                "validation_context": {"trusted_ca": {"filename": ROOT}},
            },
        }
        cluster["transport_socket"] = {"name": "envoy.transport_sockets.tls", "typed_config": context}
    return cluster


def envoy(listen, to, is_http2, is_tls):
    text = envoy_config([envoy_listener(listen)], [envoy_cluster(to, is_http2, is_tls)])
    command = [f"{BIN}/envoy", "-c", written("envoy.json", text), "--concurrency", "1"]
    launch([*command, "--disable-hot-restart", "--log-level", "error"], listen)


def envoy_upstream(scheme):
    """Envoy takes both protocols on one port, and passes them to Go."""
    to = go_upstream("http")
    if to is None:
        return None
    port = free_port()
    envoy(port, to, False, False)
    return port


def go_upstream(_scheme):
    if not os.access(f"{OWN}/go", os.X_OK):
        return None
    port = free_port()
    launch([f"{OWN}/go", "server", f"127.0.0.1:{port}"], port)
    return port


def node_upstream(scheme):
    node = program("NODE", "node")
    if not node:
        return None
    port = free_port()
    launch([node, f"{HERE}/node.mjs", scheme, str(port)], port)
    return port


def hypercorn_upstream(_scheme):
    port = free_port()
    launch([f"{BIN}/hypercorn", "--bind", f"127.0.0.1:{port}", "application:app"], port)
    return port


def nghttpd_upstream(scheme):
    nghttpd = program("NGHTTPD", "nghttpd")
    if not nghttpd or scheme == "http":
        return None
    port = free_port()
    launch([nghttpd, "--no-tls", "-d", SITE, "--address=127.0.0.1", str(port)], port)
    return port


UPSTREAMS = {
    "nginx": nginx_upstream,
    "caddy": caddy_upstream,
    "haproxy": haproxy_upstream,
    "envoy": envoy_upstream,
    "go": go_upstream,
    "node": node_upstream,
    "hypercorn": hypercorn_upstream,
    "nghttpd": nghttpd_upstream,
}


def upstream(name, scheme):
    port = UPSTREAMS[name](scheme)
    if port is None:
        return "SKIPPED: not installed"
    edge = serve("--proxy", f"{scheme}://127.0.0.1:{port}")
    for version in "123":
        if name == "nghttpd":
            url = f"https://localhost:{edge}/a.txt"
            flag = {"1": "--http1.1", "2": "--http2", "3": "--http3-only"}[version]
            text = said([COURSER, "get", flag, "-4", "-s", "-S", "-f", "--cacert", ROOT, url])
            expect(f"file over {version}", text, "0123456789\n")
            continue
        for arguments, method, length in (
            ([], "GET", 0),
            (["-d", "x" * 50_000], "POST", 50_000),
            (["-X", "DELETE"], "DELETE", 0),
        ):
            text = get(version, edge, *arguments)
            words = text.split()
            expect(f"request line over {version}", words[:2], [method, "/a%2fb?c=d"])
            expect(f"host over {version}", words[2].split(":")[0], "host=localhost")
            if len(words) > 3:
                expect(f"content over {version}", words[3], f"length={length}")
    return "passed"


# Clients of `courser serve --proxy` before Go or, without it, hypercorn.


def curl_client(version, edge):
    curl = program("CURL", "curl")
    flag = {"1": "--http1.1", "2": "--http2"}[version]
    if not curl:
        return None
    lines = ""
    for arguments in ([], ["-d", "x" * 100_000]):
        form = ["-w", "%{http_version} %{http_code}\n", "-sS", "--cacert", ROOT, *arguments]
        text = said([curl, flag, *form, f"https://localhost:{edge}/client"])
        body, last = text.rstrip("\n").rsplit("\n", 1)
        major, status = last.split()
        lines += f"{major[0]} {status} {body}\n"
    return lines


def go_client(version, edge):
    if not os.access(f"{OWN}/go", os.X_OK):
        return None
    return said([f"{OWN}/go", "client", version, ROOT, f"https://localhost:{edge}/client"])


def node_client(version, edge):
    node = program("NODE", "node")
    if not node:
        return None
    return said([node, f"{HERE}/node.mjs", f"client{version}", ROOT, f"https://localhost:{edge}/client"])


CLIENTS = {"curl": curl_client, "go": go_client, "node": node_client}


def client(name, version):
    port = go_upstream("http") or hypercorn_upstream("http")
    edge = serve("--proxy", f"http://127.0.0.1:{port}")
    text = CLIENTS[name](version, edge)
    if text is None:
        return "SKIPPED: not installed"
    expected = "".join(
        f"{version} 200 {method} /client host=localhost:{edge} length={length}\n"
        for method, length in (("GET", 0), ("POST", 100_000))
    )
    expect("answers", text, expected)
    return "passed"


def grpc_both():
    port = free_port()
    launch([sys.executable, f"{HERE}/grpc_peer.py", "server", str(port)], port)
    edge = serve("--proxy", f"h2c://127.0.0.1:{port}")
    said([sys.executable, f"{HERE}/grpc_peer.py", "client", ROOT, f"localhost:{edge}"])
    return "passed"


def nghttp_client():
    nghttp = program("NGHTTP", "nghttp")
    if not nghttp:
        return "SKIPPED: not installed"
    edge = serve(SITE)
    text = said([nghttp, "--no-dep", f"https://localhost:{edge}/a.txt"])
    expect("file", text, "0123456789\n")
    return "passed"


# Browsers: page.html does what pages do.


def browser(start, is_http3):
    node = program("NODE", "node")
    if not node:
        return "SKIPPED: no node"
    results = pathlib.Path(OWN, "results")
    results.write_text("")
    to = free_port()
    launch([node, f"{HERE}/node.mjs", "page", str(to), str(results)], to)
    edge = serve("--proxy", f"http://127.0.0.1:{to}")
    proxy = started[-1]
    running = start(f"https://localhost:{edge}/", edge if is_http3 else None, CERTIFICATE, ROOT)
    if running is None:
        return "SKIPPED: not installed"
    try:
        first = result(results, 0)
        proxy.terminate()
        proxy.wait(60)
        # Long enough for the page to notice: it asks ten times a second.
        time.sleep(2)
        serve("--proxy", f"http://127.0.0.1:{to}", port=edge)
        second = result(results, 1)
    finally:
        running.stop()
    protocols = first.pop("protocols")
    wanted = {"objects": 300, "upload": 5_000_000, "events": "1,2,3", "socket": "hello"}
    expect("what the page did", first, wanted | {"seek": f"206 10 {4_000_000 % 251}"})
    expect("protocols", protocols, "h3" if is_http3 else "h2")
    expect("after a restart", second, {"restarted": True})
    return f"passed: {running.version}"


def result(results, number):
    for _ in range(900):
        lines = results.read_text().splitlines()
        if len(lines) > number:
            return json.loads(lines[number])
        time.sleep(0.1)
    raise RuntimeError(f"the page has not made report {number + 1}")


# Reverse proxies in front of `courser serve DIR`, over TLS.


def nginx_front(listen, to):
    nginx = program("NGINX", "nginx")
    if not nginx:
        return False
    text = f"""daemon off; pid {OWN}/nginx.pid; error_log {OWN}/nginx.log; worker_processes 1;
events {{}}
http {{
    access_log off; client_body_temp_path {OWN}/nginx-body; proxy_temp_path {OWN}/nginx-proxy;
    fastcgi_temp_path {OWN}/nginx-f; uwsgi_temp_path {OWN}/nginx-u; scgi_temp_path {OWN}/nginx-s;
    server {{
        listen 127.0.0.1:{listen};
        location / {{
            proxy_pass https://127.0.0.1:{to}; proxy_http_version 1.1; proxy_set_header Host localhost;
            proxy_ssl_verify on; proxy_ssl_trusted_certificate {ROOT}; proxy_ssl_name localhost;
            proxy_ssl_server_name on;
        }}
    }}
}}
"""
    launch([nginx, "-c", written("nginx.conf", text)], listen)
    return True


def caddy_front(listen, to):
    text = f"""{{
    admin off
    auto_https off
    storage file_system {OWN}/caddy
}}
http://:{listen} {{
    reverse_proxy https://localhost:{to} {{
        header_up Host localhost
        transport http {{
            tls_trust_pool file {ROOT}
            versions 2
        }}
    }}
}}
"""
    path = written("Caddyfile", text)
    launch([f"{BIN}/caddy", "run", "--config", path, "--adapter", "caddyfile"], listen)
    return True


def haproxy_front(listen, to):
    haproxy = program("HAPROXY", "haproxy")
    if not haproxy:
        return False
    text = f"""defaults
    mode http
    timeout client 20s
    timeout server 20s
    timeout connect 5s
frontend all
    bind 127.0.0.1:{listen}
    http-request set-header Host localhost
    default_backend origin
backend origin
    server origin 127.0.0.1:{to} ssl ca-file {ROOT} sni str(localhost) verifyhost localhost alpn h2
"""
    launch([haproxy, "-f", written("haproxy.conf", text)], listen)
    return True


def envoy_front(listen, to):
    envoy(listen, to, True, True)
    return True


FRONTS = {"nginx": nginx_front, "caddy": caddy_front, "haproxy": haproxy_front, "envoy": envoy_front}


def front(name):
    origin = serve(SITE)
    port = free_port()
    if not FRONTS[name](port, origin):
        return "SKIPPED: not installed"
    url = f"http://127.0.0.1:{port}/a.txt"
    host = ["-H", "Host: localhost"]
    expect("file", said([COURSER, "get", "-s", "-S", "-f", *host, url]), "0123456789\n")
    part = said([COURSER, "get", "-s", "-S", "-f", "-r", "2-4", *host, url])
    expect("part of it", part, "234")
    status = said([COURSER, "get", "-s", "-o", "/dev/null", "-w", "%{http_code}", *host, f"{url}x"])
    expect("status of what is not there", status, "404")
    head = said([COURSER, "get", "-s", "-I", *host, url]).lower()
    expect("length of HEAD", "content-length: 11" in head, True)
    return "passed"


# Foreign suites.


def h2spec():
    tool = f"{OWN}/bin/h2spec"
    if not os.access(tool, os.X_OK):
        return "SKIPPED: no Go, or no module proxy"
    # A server of files has answered before the bad frame arrives, and then says nothing more.
    edge = serve("--proxy", f"http://127.0.0.1:{go_upstream('http')}")
    report = f"{OWN}/h2spec.xml"
    command = [tool, "-t", "-k", "-h", "localhost", "-p", str(edge), "-P", "/slow", "-j", report]
    done = subprocess.run(command, capture_output=True, timeout=300)
    text = pathlib.Path(report).read_text()
    failed = {
        f"{package} {name}"
        for package, name, content in re.findall(
            r'<testcase package="([^"]*)" classname="([^"]*)"[^>]*>(.*?)</testcase>', text, re.S
        )
        if "<failure" in content or "<error" in content
    }
    expect("failures", sorted(failed), [])
    summary = done.stdout.decode().strip().splitlines()[-1]
    return f"passed: {summary}"


def raw_answer(edge, request):
    import ssl

    context = ssl.create_default_context(cafile=ROOT)
    with socket.create_connection(("127.0.0.1", edge), 10) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as stream:
            stream.sendall(request)
            answer = b""
            while piece := stream.recv(65536):
                answer += piece
    return answer


def httplint():
    edge = serve(SITE)
    found = []
    cases = {
        "GET": "GET /a.txt HTTP/1.1",
        "gzip": "GET / HTTP/1.1\r\naccept-encoding: gzip",
        "range": "GET /a.txt HTTP/1.1\r\nrange: bytes=0-1",
        "unsatisfiable": "GET /a.txt HTTP/1.1\r\nrange: bytes=99-",
        "missing": "GET /none HTTP/1.1",
        "not allowed": "POST /a.txt HTTP/1.1\r\ncontent-length: 0",
        "not modified": "GET /a.txt HTTP/1.1\r\nif-none-match: *",
    }
    for name, lines in cases.items():
        request = f"{lines}\r\nhost: localhost:{edge}\r\nconnection: close\r\n\r\n"
        answer = raw_answer(edge, request.encode())
        done = subprocess.run([f"{BIN}/httplint", "-n"], input=answer, capture_output=True, timeout=60)
        text = done.stdout.decode(errors="replace")
        if "[GOOD]" not in text:
            found.append(f"{name}: nothing is good: {done.stderr.decode(errors='replace')[-200:]}")
        found += [f"{name}: {line.strip()}" for line in text.splitlines() if "[BAD]" in line]
    expect("errors", found, [])
    return f"passed: {len(cases)} answers"


def redbot():
    edge = serve(SITE)
    url = f"https://127.0.0.1:{edge}/a.txt"
    text = said([f"{BIN}/redbot", "-o", "text", url])
    wanted = (
        "The Content-Length header is correct.",
        "The server's clock is correct.",
        "If-None-Match conditional requests are supported.",
        "If-Modified-Since conditional requests are supported.",
        "A ranged request returned the correct partial content.",
    )
    expect("what it does not say", [line for line in wanted if line not in text], [])
    return f"passed: {len(wanted)} properties"


def cases():
    for name in UPSTREAMS:
        for scheme in ("http", "h2c"):
            if (name, scheme) != ("nghttpd", "http"):
                yield f"upstream {name} {scheme}", lambda n=name, s=scheme: upstream(n, s)
    for name in CLIENTS:
        for version in "12":
            yield f"client {name} HTTP/{version}", lambda n=name, v=version: client(n, v)
    for name, start in (("chromium", browsers.chromium), ("firefox", browsers.firefox)):
        for is_http3 in (False, True):
            version = "3" if is_http3 else "2"
            yield f"browser {name} HTTP/{version}", lambda s=start, h=is_http3: browser(s, h)
    yield "client nghttp", nghttp_client
    yield "client and upstream grpcio", grpc_both
    for name in FRONTS:
        yield f"front {name}", lambda n=name: front(n)
    yield "suite h2spec", h2spec
    yield "suite httplint", httplint
    yield "suite redbot", redbot


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", help="words that the names of the cases contain, separated by commas")
    only = parser.parse_args().only
    words = only.split(",") if only else [""]
    is_good = True
    for name, case in cases():
        if not any(word in name for word in words):
            continue
        try:
            result = case()
        except (RuntimeError, subprocess.TimeoutExpired, OSError) as error:
            result = f"FAILED: {error}"
            is_good = False
        finally:
            stop()
        print(f"{name:<28} {result}", flush=True)
    sys.exit(0 if is_good else 1)


main()
