"""The conditions, servers and clients of interop/paths/run, which says what is checked."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
ROOT, SITE, OWN, COURSER, QUIC_GO, BIN = (
    os.environ[name] for name in ("ROOT", "SITE", "OWN", "COURSER", "QUIC_GO", "BIN")
)
CERTIFICATE, KEY, BOTH = (f"{OWN}/{name}.pem" for name in ("certificate", "key", "both"))
SERVER, CLIENT, PORT, RELAY, ORIGIN = "198.18.0.1", "198.18.0.2", 4433, 4444, 8080
LINK_LOCAL = "fe80::c0:1"
LIMIT = 20
SMALL, LARGE = "/bytes/100000", "/bytes/10000000"
# Programs start and Python loads in this time, whatever the path does.
START = 0.3

spaces = {end: f"courser-paths-{os.getpid()}-{end}" for end in ("server", "client")}


def skipped(name: str, reason: str) -> None:
    print(f"SKIPPED {name}: {reason}", file=sys.stderr)


def inside(end: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", spaces[end], *command]


def run(*command: str, text: str = "") -> None:
    subprocess.run(command, input=text, text=True, check=True)


def ip(end: str, command: str) -> None:
    run("ip", "-n", spaces[end], *command.split())


def connect_ends() -> None:
    server, client = spaces.values()
    ip("server", f"link add veth0 type veth peer name veth0 netns {client}")
    ip("server", f"address add {SERVER}/30 dev veth0")
    ip("server", f"address add {LINK_LOCAL}/64 dev veth0 nodad")
    ip("client", f"address add {CLIENT}/30 dev veth0")
    for end in spaces:
        ip(end, "link set veth0 up")


def set_up() -> None:
    for name in spaces.values():
        run("ip", "netns", "add", name)
    for end in spaces:
        ip(end, "link set lo mtu 1500 up")
    connect_ends()


# Each condition: rules of nftables for what comes to the server and to the client, and more.
class Condition:
    def __init__(self, up="", down="", segments=True, relay="", path=SMALL, rate="", **more):
        self.up, self.down, self.segments, self.relay = up, down, segments, relay
        self.path, self.rate = path, rate
        self.refused = more.get("refused", "")
        self.during = more.get("during")
        self.courser = more.get("courser", [])
        self.serve = more.get("serve", [])
        self.host = more.get("host", SERVER)
        # What the protocol allows: the first probe timeout is a second (RFC 9002 §6.2.2).
        self.allowed = more.get("allowed", 0)

    def __enter__(self):
        for end, rule in (("server", self.up), ("client", self.down)):
            chain = "type filter hook prerouting priority -300;"
            run(
                *inside(end, "nft", "-f", "-"),
                text=f"flush ruleset\ntable inet courser {{\nchain path {{\n{chain}\n{rule}\n}}\n}}\n",
            )
            on = "on" if self.segments else "off"
            run(*inside(end, "ethtool", "-K", "veth0", "tx-udp-segmentation", on))
            if self.rate:
                tc = f"tc qdisc add dev veth0 root tbf rate {self.rate} burst 50kb latency 50ms"
                run(*inside(end, *tc.split()))

    def __exit__(self, *_):
        for end in spaces:
            command = inside(end, "tc", "qdisc", "delete", "dev", "veth0", "root")
            subprocess.run(command, stderr=subprocess.DEVNULL)


def number(which: str) -> str:
    """Drops some of the first datagrams to the server, by their number."""
    return f"udp dport {PORT} numgen inc mod 1000000 {which} counter drop"


def interface_again() -> None:
    time.sleep(1)
    ip("client", "link delete veth0")
    time.sleep(0.5)
    connect_ends()


def address_again() -> None:
    time.sleep(1)
    ip("client", "address flush dev veth0")
    time.sleep(0.5)
    ip("client", f"address add {CLIENT}/30 dev veth0")


def smaller_path() -> None:
    """A route with a smaller MTU at both ends; larger datagrams vanish."""
    time.sleep(1)
    for end in spaces:
        rule = "add rule inet courser path meta l4proto udp meta length > 1300 drop"
        run(*inside(end, "nft", rule))


MARKED = "ip ecn != not-ect counter drop"
BATCH = "meta l4proto udp meta length > 1500 counter drop"
OVER_1200 = "meta l4proto udp meta length > 1228 counter drop"
FIRST_ANSWER = f"udp sport {PORT} numgen inc mod 1000000 0 counter drop"
CONDITIONS = {
    "plain": Condition(),
    "batches to the server lost": Condition(up=BATCH),
    "batches to the client lost": Condition(down=BATCH),
    "batches lost": Condition(up=BATCH, down=BATCH),
    "marked to the server lost": Condition(up=MARKED),
    "marked lost": Condition(up=MARKED, down=MARKED),
    "marks cleared": Condition(up="ip ecn set not-ect", down="ip ecn set not-ect"),
    "all marked CE": Condition(up="ip ecn set ce", down="ip ecn set ce"),
    "marks refused to the client": Condition(refused="client"),
    "marks refused to the server": Condition(refused="server"),
    "over 1200 bytes lost": Condition(up=OVER_1200, down=OVER_1200, segments=False),
    "first datagram lost": Condition(up=number("0"), segments=False),
    "second datagram lost": Condition(up=number("1"), segments=False),
    "first two lost": Condition(up=number("< 2"), segments=False, allowed=1),
    "third and fourth lost": Condition(up=number("2-3"), segments=False),
    "first answer lost": Condition(down=FIRST_ANSWER, segments=False),
    "first two reordered": Condition(relay="reordered"),
    "first arrives third": Condition(relay="late"),
    "datagrams twice": Condition(relay="twice"),
    "port changes in the handshake": Condition(relay="moved-early"),
    "port changes in a transfer": Condition(relay="moved-often", path=LARGE),
    "version 2 first": Condition(courser=["--quic-version", "2,1"]),
    "zone of an address": Condition(host=f"[{LINK_LOCAL}%25veth0]"),
    "QUIC bit greased": Condition(serve=["--grease-quic-bit"]),
    "transfer at 50 Mbit/s": Condition(path=LARGE, rate="50mbit"),
    "smaller path in a transfer": Condition(
        path=LARGE, rate="50mbit", segments=False, during=smaller_path
    ),
    "address again in a transfer": Condition(path=LARGE, rate="50mbit", during=address_again),
    "interface again in a transfer": Condition(path=LARGE, rate="50mbit", during=interface_again),
}


def nginx(retry: str) -> str:
    return f"""
daemon off; master_process off; pid {OWN}/nginx.pid; error_log {OWN}/nginx.log info;
user root;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {OWN}/body; proxy_temp_path {OWN}/proxy;
    fastcgi_temp_path {OWN}/fastcgi; uwsgi_temp_path {OWN}/uwsgi; scgi_temp_path {OWN}/scgi;
    ssl_certificate {CERTIFICATE}; ssl_certificate_key {KEY};
    quic_retry {retry}; quic_gso on;
    server {{ listen {PORT} quic; listen [::]:{PORT} quic; root {SITE}; }}
}}
"""


def haproxy(retry: str) -> str:
    return f"""
global
    limited-quic
    nbthread 1
defaults
    mode http
    timeout client 60s
    timeout server 60s
    timeout connect 5s
frontend quic
    bind quic4@0.0.0.0:{PORT} ssl crt {BOTH} alpn h3 {retry}
    bind quic6@[::]:{PORT} ssl crt {BOTH} alpn h3 {retry} v6only
    default_backend origin
backend origin
    server origin 127.0.0.1:{ORIGIN}
"""


def envoy() -> str:
    types = "type.googleapis.com/envoy.extensions"
    files = {"certificate_chain": {"filename": CERTIFICATE}, "private_key": {"filename": KEY}}
    tls = {"alpn_protocols": ["h3"], "tls_certificates": [files]}
    transport = {
        "name": "envoy.transport_sockets.quic",
        "typed_config": {
            "@type": f"{types}.transport_sockets.quic.v3.QuicDownstreamTransport",
            "downstream_tls_context": {"common_tls_context": tls},
        },
    }
    route = {"match": {"prefix": "/"}, "route": {"cluster": "origin"}}
    manager = {
        "@type": f"{types}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "codec_type": "HTTP3",
        "stat_prefix": "quic",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{types}.filters.http.router.v3.Router"},
            }
        ],
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    where = {"protocol": "UDP", "address": "::", "port_value": PORT, "ipv4_compat": True}
    listener = {
        "name": "quic",
        "address": {"socket_address": where},
        "udp_listener_config": {"quic_options": {}},
        "filter_chains": [{"transport_socket": transport, "filters": filters}],
    }
    origin = {"socket_address": {"address": "127.0.0.1", "port_value": ORIGIN}}
    ends = [{"lb_endpoints": [{"endpoint": {"address": origin}}]}]
    cluster = {
        "name": "origin",
        "type": "STATIC",
        "load_assignment": {"cluster_name": "origin", "endpoints": ends},
    }
    return json.dumps({"static_resources": {"listeners": [listener], "clusters": [cluster]}})


def caddy() -> str:
    return f"""{{
    admin off
    auto_https off
    storage file_system {OWN}/caddy
}}
https://:{PORT} {{
    tls {CERTIFICATE} {KEY}
    root * {SITE}
    file_server
}}
"""


def written(name: str, text: str) -> str:
    pathlib.Path(OWN, name).write_text(text)
    return f"{OWN}/{name}"


def program(variable: str, name: str, probe: list[str], wanted: str) -> str:
    """Returns a program that says what is wanted when it is asked, or nothing."""
    found = os.environ.get(variable) or shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
    found = shutil.which(found or "")
    if not found:
        return ""
    said = subprocess.run([found, *probe], capture_output=True, text=True)
    return found if wanted in said.stdout + said.stderr else ""


def known_servers() -> dict[str, list[str]]:
    ours = [COURSER, "serve", "--listen", f"[::]:{PORT}", "--no-tcp", "--no-compress", SITE]
    own = [sys.executable, f"{HERE.parent}/http3/aioquic_peer.py", "server", CERTIFICATE, KEY]
    found = {
        "courser": [*ours, "--cert", CERTIFICATE, "--key", KEY],
        "envoy": [f"{BIN}/envoy", "-c", written("envoy.json", envoy())]
        + ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"],
        "caddy": [f"{BIN}/caddy", "run", "--config", written("Caddyfile", caddy())]
        + ["--adapter", "caddyfile"],
        "aioquic": [*own, f"[::]:{PORT}"],
        "hypercorn": [f"{BIN}/hypercorn", "--quic-bind", f"[::]:{PORT}", "--bind", "127.0.0.1:0"]
        + ["--certfile", CERTIFICATE, "--keyfile", KEY, "application:app"],
    }
    if binary := program("NGINX", "nginx", ["-V"], "http_v3"):
        for name, retry in (("nginx", "off"), ("nginx-retry", "on")):
            path = written(f"{name}.conf", nginx(retry))
            found[name] = [binary, "-c", path]
    else:
        skipped("nginx", "no nginx with the module http_v3")
    if binary := program("HAPROXY", "haproxy", ["-vv"], "USE_QUIC=1"):
        for name, retry in (("haproxy", ""), ("haproxy-retry", "quic-force-retry")):
            found[name] = [binary, "-f", written(f"{name}.conf", haproxy(retry))]
    else:
        skipped("haproxy", "no HAProxy with QUIC")
    if os.path.exists(QUIC_GO):
        found["quic-go"] = [QUIC_GO, "server", CERTIFICATE, KEY, f"[::]:{PORT}"]
    else:
        skipped("quic-go", "Go or its module proxy is missing")
    return found


def known_clients() -> dict[str, list[str]]:
    get = [sys.executable, f"{HERE}/get.py"]
    found = {
        "courser": [COURSER, "get", "--http3-only", "--cacert", ROOT, "--globoff", "--fail"]
        + ["-s", "-S", "-o", "/dev/null", "-w", "%{size_download}"],
        "curl": [*get, "curl", ROOT],
        "aioquic": [*get, "aioquic", ROOT],
    }
    if os.path.exists(QUIC_GO):
        found["quic-go"] = [QUIC_GO, "get", ROOT]
    return found


class Server:
    def __init__(self, name: str, command: list[str], condition: Condition):
        self.log = open(f"{OWN}/{name}.out", "w")
        environment = dict(os.environ)
        if condition.refused == "server":
            environment["LD_PRELOAD"] = f"{OWN}/refuse_marks.so"
        if name == "courser":
            command = [*command, *condition.serve]
        self.process = subprocess.Popen(
            inside("server", *command),
            env=environment,
            cwd=HERE,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        wanted = f":{PORT:04X}"
        for _ in range(150):
            paths = ["/proc/net/udp", "/proc/net/udp6"]
            read = subprocess.run(inside("server", "cat", *paths), capture_output=True, text=True)
            if any(wanted in line.split()[1] for line in read.stdout.splitlines()):
                break
            if self.process.poll() is not None:
                raise RuntimeError(f"{name} has ended, see {self.log.name}")
            time.sleep(0.1)
        time.sleep(0.3)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def take(name: str, command: list[str], condition: Condition) -> tuple[float | None, str]:
    """Returns the seconds of one request, or why it has failed."""
    host, port = condition.host, PORT
    relay = None
    if condition.relay:
        host, port = "127.0.0.1", RELAY
        forward = [f"{HERE}/relay.py", condition.relay, str(RELAY), SERVER, str(PORT)]
        relay = subprocess.Popen(inside("client", sys.executable, *forward))
        time.sleep(0.3)
    if name == "courser":
        command = [*command, *condition.courser]
    environment = dict(os.environ)
    if condition.refused == "client":
        environment["LD_PRELOAD"] = f"{OWN}/refuse_marks.so"
    begun = time.monotonic()
    process = subprocess.Popen(
        inside("client", *command, f"https://{host}:{port}{condition.path}"),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        if condition.during:
            condition.during()
        output, error = process.communicate(timeout=LIMIT)
        seconds = time.monotonic() - begun
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None, f"no end in {LIMIT} s"
    finally:
        if relay:
            relay.kill()
            relay.wait()
    size = condition.path.rpartition("/")[2]
    if process.returncode or output.split()[-1:] != [size]:
        lines = (error.strip() or output.strip()).splitlines()
        return None, lines[-1][:150] if lines else f"exit code {process.returncode}"
    return seconds, ""


def measure(arguments) -> list[dict]:
    servers, clients = known_servers(), known_clients()
    rows = []
    for label in arguments.conditions or CONDITIONS:
        condition = CONDITIONS[label]
        for server in arguments.servers or servers:
            if server not in servers or (condition.serve and server != "courser"):
                continue
            for client in arguments.clients or clients:
                if client not in clients or (condition.courser and client != "courser"):
                    continue
                seconds, why = [], ""
                for _ in range(arguments.repeat):
                    # Each run with a new server, so that no state of a path is kept.
                    with condition_of(condition, server, servers[server]):
                        one, why = take(client, clients[client], condition)
                    if one is None:
                        break
                    seconds.append(one)
                value = round(statistics.median(seconds), 3) if not why else None
                row = dict(condition=label, server=server, client=client, seconds=value, why=why)
                rows.append(row)
                print(f"{label:32} {server:14} {client:8} {value or why}", flush=True)
    return rows


class condition_of:
    """A condition and a server in it."""

    def __init__(self, condition: Condition, name: str, command: list[str]):
        self.condition, self.name, self.command = condition, name, command

    def __enter__(self):
        self.condition.__enter__()
        self.server = Server(self.name, self.command, self.condition)

    def __exit__(self, *_):
        self.server.__exit__()
        self.condition.__exit__()


def worse(rows: list[dict]) -> list[str]:
    """Names what courser does worse than others in the same place."""
    found = []
    for row in rows:
        for end, other in (("client", "server"), ("server", "client")):
            if row[end] != "courser" or row[other] == "courser":
                continue
            others = [
                each["seconds"]
                for each in rows
                if each["condition"] == row["condition"]
                and each[other] == row[other]
                and each[end] != "courser"
                and each["seconds"]
            ]
            if not others:
                continue
            best, own = min(others), row["seconds"]
            limit = max(2 * best, CONDITIONS[row["condition"]].allowed) + START
            if own is None or own > limit:
                place = f"{row['condition']}: courser as {end} with {row[other]}"
                found.append(f"{place}: {own or row['why']}, the best other {end} {best}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    listed = lambda text: [item.strip() for item in text.split(",")]
    for name in ("conditions", "servers", "clients"):
        parser.add_argument(f"--{name}", type=listed)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("-o", "--output")
    arguments = parser.parse_args()
    for label in arguments.conditions or []:
        if label not in CONDITIONS:
            parser.error(f"no condition {label!r}; there are: {', '.join(CONDITIONS)}")
    origin = None
    try:
        set_up()
        files = ["-m", "http.server", str(ORIGIN), "--bind", "127.0.0.1", "--directory", SITE]
        origin = subprocess.Popen(
            inside("server", sys.executable, *files),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        rows = measure(arguments)
    finally:
        if origin:
            origin.kill()
            origin.wait()
        for name in spaces.values():
            subprocess.run(["ip", "netns", "delete", name])
    if arguments.output:
        pathlib.Path(arguments.output).write_text(json.dumps(rows, indent=1))
    complaints = worse(rows)
    for complaint in complaints:
        print(f"worse: {complaint}")
    return 1 if complaints else 0


sys.exit(main())
