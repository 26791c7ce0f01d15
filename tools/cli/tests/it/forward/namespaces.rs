//! QUIC inside of QUIC on paths of each size, and IP tunnels. Needs root.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Folder, courser, number, run, skipped};

/// Namespaces of a client, a proxy and a server in a row.
struct Row {
    names: [String; 3],
}

/// A process in a namespace, killed at the end.
struct Running {
    child: Child,
    address: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        for name in &self.names {
            succeeds(Command::new("ip").args(["netns", "delete", name]));
        }
    }
}

fn succeeds(command: &mut Command) -> bool {
    let silent = command.stderr(Stdio::null()).stdout(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

impl Running {
    /// Sends a signal, and returns true if the process ends well within half a minute.
    fn ends_on(&mut self, signal: &str) -> bool {
        let id = self.child.id().to_string();
        assert!(succeeds(Command::new("kill").args([signal, &id])));
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Row {
    /// Creates the namespaces, with this MTU between client and proxy. Returns `None` if that is not possible here.
    fn new(mtu: u16) -> Option<Self> {
        let name = |end: &str| format!("courser-via-{}-{mtu}-{end}", std::process::id());
        let row = Self {
            names: ["client", "proxy", "server"].map(name),
        };
        let [client, proxy, server] = &row.names;
        let commands = [
            format!("netns add {client}"),
            format!("netns add {proxy}"),
            format!("netns add {server}"),
            format!(
                "-n {client} link add veth0 mtu {mtu} type veth peer name veth0 mtu {mtu} netns {proxy}"
            ),
            format!("-n {proxy} link add veth1 type veth peer name veth0 netns {server}"),
            format!("-n {client} address add 198.18.1.1/30 dev veth0"),
            format!("-n {proxy} address add 198.18.1.2/30 dev veth0"),
            format!("-n {proxy} address add 198.18.2.1/30 dev veth1"),
            format!("-n {server} address add 198.18.2.2/30 dev veth0"),
            format!("-n {client} link set veth0 up"),
            format!("-n {proxy} link set veth0 up"),
            format!("-n {proxy} link set veth1 up"),
            format!("-n {server} link set veth0 up"),
        ];
        for command in commands {
            if !succeeds(Command::new("ip").args(command.split(' '))) {
                skipped("no network namespaces");
                return None;
            }
        }
        Some(row)
    }

    /// Returns a command that runs the binary in a namespace.
    fn inside(&self, index: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.names[index]])
            .arg(courser(&[]).get_program())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Returns true if a namespace has a UDP socket that is connected to an address.
    fn has_socket_to(&self, index: usize, address: &str) -> bool {
        let mut command = Command::new("ip");
        let read = ["netns", "exec", &self.names[index], "cat", "/proc/net/udp"];
        let output = command.args(read).output().expect("ip starts");
        let address: std::net::Ipv4Addr = address.parse().expect("an address");
        // In the order of bytes of the machine.
        let remote = format!("{:08X}:", u32::from_ne_bytes(address.octets()));
        let table = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut rows = table.lines();
        rows.any(|row| {
            row.split_whitespace()
                .nth(2)
                .is_some_and(|it| it.starts_with(&remote))
        })
    }

    fn start(&self, index: usize, arguments: &[&str]) -> Running {
        let mut child = self.inside(index, arguments).spawn().expect("it starts");
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        lines.read_line(&mut line).expect("UTF-8");
        let event: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
        let address = event["address"].as_str();
        let address = address.or_else(|| event["addresses"][0].as_str());
        Running {
            address: address.expect("an address").to_owned(),
            child,
        }
    }
}

/// The packets of QUIC inside, of at least 1200 bytes (RFC 9000 §14), fit into those outside on each path that carries
/// QUIC with room for the headers of a tunnel, and grow with it. On a path of 1280 bytes, the smallest that IPv6
/// allows, they do not fit, which the client reports.
#[test]
fn packets_inside_follow_the_size_of_the_path() {
    let mut before = 0.0;
    for mtu in [1280, 1300, 1380, 1400, 1450, 1500] {
        let Some(row) = Row::new(mtu) else {
            return;
        };
        let listen = ["perf", "server", "--json", "--listen", "198.18.2.2:0"];
        let server = row.start(2, &listen);
        let proxy = row.start(
            1,
            &[
                "proxy",
                "--json",
                "--open",
                "--udp",
                "--listen",
                "198.18.1.2:0",
                "--allow",
                "198.18.2.0/24",
            ],
        );
        let output = row
            .inside(
                0,
                &[
                    "perf",
                    "client",
                    &server.address,
                    "--insecure",
                    "--json",
                    "--via",
                    &proxy.address,
                    "--number",
                    "3M",
                ],
            )
            .output()
            .expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{mtu}: {error}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        let inside = number(&report, "settings.mtu");
        assert!(inside >= 1200.0, "{mtu}: {report}");
        assert!(inside <= f64::from(mtu) - 28.0, "{mtu}: {inside}");
        assert!(inside >= before, "{mtu}: {inside} after {before}");
        before = inside;
    }
    assert!(before > 1380.0, "{before}");
}

/// Returns a new token of a client, and the file with its line.
fn token(folder: &Folder) -> (String, String) {
    let made = run(&["proxy", "--make-token", "alice"]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let note = text(&made.stderr);
    let token = note.trim_end().rsplit(' ').next().expect("a token");
    (
        token.to_owned(),
        folder.file("clients", &text(&made.stdout)),
    )
}

/// Lets the proxy forward packets, and gives the server a way back. Returns false if that is not possible here.
fn can_forward(row: &Row) -> bool {
    let [_, proxy, server] = &row.names;
    let commands = [
        format!("netns exec {proxy} sysctl -qw net.ipv4.ip_forward=1"),
        format!("-n {server} route add 10.89.0.0/24 via 198.18.2.1"),
    ];
    let mut commands = commands.iter();
    fs::exists("/dev/net/tun").is_ok_and(|it| it)
        && commands.all(|it| succeeds(Command::new("ip").args(it.split(' '))))
}

/// `courser tunnel` and CONNECT-UDP of one client on one listener, with one file of clients, one policy and one log.
#[test]
fn ip_tunnels_and_udp_tunnels_share_a_listener() {
    let Some(row) = Row::new(1499) else {
        return;
    };
    if !can_forward(&row) {
        return skipped("no TUN devices");
    }
    let folder = Folder::new();
    let (token, clients) = token(&folder);
    folder.file("index.html", "inside");
    let path = folder.path().to_str().expect("UTF-8");
    let log = folder.path().join("log");
    let site = row.start(2, &["serve", path, "--json", "--listen", "198.18.2.2:0"]);
    let flags = "proxy --json --listen 198.18.1.2:0 --udp --ip 10.89.0.0/24 --tun courser1 \
                 --allow 198.18.2.0/30 --access-log=json";
    let files = ["--auth", &clients, "--access-log-file"];
    let log_file = log.to_str().expect("UTF-8");
    let flags = [&words(flags)[..], &files, &[log_file]].concat();
    let mut proxy = row.start(1, &flags);

    let tunnel = format!("tunnel {} --insecure --route 198.18.2.0/30", proxy.address);
    let tunnel = words(&tunnel);
    let run_at_client =
        |arguments: &[&str]| -> Output { row.inside(0, arguments).output().expect("it starts") };
    let refused = run_at_client(&tunnel);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && error.contains("407"),
        "{error}"
    );
    let get = format!(
        "get --silent --show-error --insecure --max-time 10 --http3-only https://{}/",
        site.address
    );
    let get = words(&get);
    assert!(
        !run_at_client(&get).status.success(),
        "there is no way but the proxy"
    );

    let mut tunnel = open_tunnel(&row, &[&tunnel[..], &["--auth", &token]].concat());
    let through_ip = run_at_client(&get);
    let error = String::from_utf8_lossy(&through_ip.stderr);
    assert_eq!(through_ip.stdout, b"inside", "{error}");
    assert!(tunnel.ends_on("-INT"));
    let through = format!(
        "--proxy masque://{} --proxy-insecure --proxy-user alice:{token}",
        proxy.address
    );
    let through = words(&through);
    let through_udp = run_at_client(&[&get[..], &through].concat());
    let error = String::from_utf8_lossy(&through_udp.stderr);
    assert_eq!(through_udp.stdout, b"inside", "{error}");
    assert!(proxy.ends_on("-TERM"));

    let log = fs::read_to_string(log).expect("a log");
    has_both_tunnels(&log, &site.address);
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Starts `courser tunnel` at the client, and waits until it has a tunnel.
fn open_tunnel(row: &Row, arguments: &[&str]) -> Running {
    let mut child = row.inside(0, arguments).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut lines = lines.map_while(Result::ok);
    assert!(lines.any(|it| it.contains("device ")), "a tunnel is open");
    Running {
        child,
        address: String::new(),
    }
}

/// Checks that the log has the refusal, the IP tunnel and the UDP tunnel to `target`.
fn has_both_tunnels(text: &str, target: &str) {
    let lines: Vec<Value> = text
        .lines()
        .map(|it| serde_json::from_str(it).expect("JSON"))
        .collect();
    let of = |method: &str, status: u64| {
        let found = lines
            .iter()
            .find(|it| it["method"] == method && it["status"] == status);
        found.unwrap_or_else(|| panic!("{method} {status}: {text}"))
    };
    assert_eq!(of("CONNECT-IP", 407)["user"], Value::Null);
    for (method, target) in [("CONNECT-IP", "* *"), ("CONNECT-UDP", target)] {
        let line = of(method, 200);
        assert_eq!(line["user"], "alice", "{line}");
        assert_eq!(line["target"], target, "{line}");
        assert_eq!(line["end"], "client", "{line}");
        for direction in ["bytes_to_target", "bytes_from_target"] {
            assert!(
                line[direction].as_u64().is_some_and(|it| it > 1000),
                "{line}"
            );
        }
    }
    assert_eq!(of("CONNECT-IP", 200)["assigned"][0], "10.89.0.2");
}

/// A client that vanishes does not keep a proxy from ending, and its tunnels are in the log.
#[test]
fn tunnels_of_clients_that_vanish_end_with_the_proxy() {
    let Some(row) = Row::new(1498) else {
        return;
    };
    let folder = Folder::new();
    let log = folder.path().join("log");
    let path = folder.path().to_str().expect("UTF-8");
    folder.file("large", &"x".repeat(1_000_000));
    let site = row.start(2, &["serve", path, "--json", "--listen", "198.18.2.2:0"]);
    let log_file = log.to_str().expect("UTF-8");
    let mut proxy = row.start(
        1,
        &[
            "proxy",
            "--json",
            "--open",
            "--listen",
            "198.18.1.2:0",
            "--allow",
            "198.18.2.0/30",
            "--access-log=json",
            "--access-log-file",
            log_file,
            "--drain-timeout",
            "100",
        ],
    );
    let masque = format!("masque://{}", proxy.address);
    let url = format!("https://{}/large", site.address);
    let mut command = row.inside(
        0,
        &[
            "get",
            "--silent",
            "--insecure",
            "--proxy-insecure",
            "--proxy",
            &masque,
            "--http3-only",
            "--output",
            "/dev/null",
            "--limit-rate",
            "1k",
            &url,
        ],
    );
    let mut client = command.spawn().expect("it starts");
    let deadline = Instant::now() + Duration::from_secs(10);
    while !row.has_socket_to(1, "198.18.2.2") {
        assert!(Instant::now() < deadline, "a tunnel is open");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(succeeds(Command::new("ip").args([
        "-n",
        &row.names[0],
        "link",
        "set",
        "veth0",
        "down"
    ])));
    let begin = Instant::now();
    let has_ended = proxy.ends_on("-TERM");
    let _ = client.kill();
    let _ = client.wait();
    assert!(has_ended, "{:?}", begin.elapsed());
    let text = fs::read_to_string(log).expect("a log");
    assert!(
        text.contains("CONNECT-UDP") && text.contains("\"end\":\"idle\""),
        "{text}"
    );
}
