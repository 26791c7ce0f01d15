//! QUIC inside of QUIC on paths of each size. Needs root.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::{courser, number, skipped};

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
