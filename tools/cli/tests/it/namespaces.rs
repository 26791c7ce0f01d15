//! Paths that silently drop packets with an optional feature: two network
//! namespaces with a pair of interfaces between them, and a filter of nftables. Needs root.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::common::{Folder, courser, skipped};

/// A namespace for the server and one for the client. Both are deleted on drop.
struct Namespaces {
    server: String,
    client: String,
}

const SERVER: &str = "198.18.0.1";
const CLIENT: &str = "198.18.0.2";

/// The address of the client on its second link.
const SECOND: &str = "198.18.4.2";

impl Namespaces {
    /// Creates the namespaces. Returns `None` if that is not possible on this machine.
    fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |end: &str| format!("courser-test-{}-{count}-{end}", std::process::id());
        let both = Self {
            server: name("server"),
            client: name("client"),
        };
        let (server, client) = (&both.server, &both.client);
        let commands = [
            format!("netns add {server}"),
            format!("netns add {client}"),
            format!("-n {server} link add veth0 type veth peer name veth0 netns {client}"),
            format!("-n {server} address add {SERVER}/30 dev veth0"),
            format!("-n {client} address add {CLIENT}/30 dev veth0"),
            format!("-n {server} link set veth0 up"),
            format!("-n {client} link set veth0 up"),
            format!("-n {client} link set lo up"),
        ];
        for command in commands {
            if !succeeds(Command::new("ip").args(command.split(' '))) {
                skipped("no network namespaces");
                return None;
            }
        }
        if !both.filter(server, "") {
            skipped("no nftables");
            return None;
        }
        Some(both)
    }

    /// Adds a second pair of interfaces, over which the server answers what comes from [`SECOND`].
    fn add_link(&self) {
        let (server, client) = (&self.server, &self.client);
        let commands = [
            format!("-n {server} link add veth1 type veth peer name veth1 netns {client}"),
            format!("-n {server} address add 198.18.4.1/30 dev veth1"),
            format!("-n {client} address add {SECOND}/30 dev veth1"),
            format!("-n {server} link set veth1 up"),
            format!("-n {client} link set veth1 up"),
            format!("-n {client} rule add from {SECOND} table 7"),
            format!("-n {client} route add default via 198.18.4.1 dev veth1 table 7"),
            // What a machine with two links has: a route over the second one, which the first one's is preferred to.
            format!("-n {client} route add 198.18.0.0/30 via 198.18.4.1 dev veth1 metric 900"),
        ];
        for command in commands {
            let mut ip = Command::new("ip");
            assert!(succeeds(ip.args(command.split(' '))), "{command}");
        }
    }

    /// Changes the network of the client.
    fn change_client(&self, command: &str) {
        let mut ip = Command::new("ip");
        ip.args(["-n", &self.client]).args(command.split(' '));
        assert!(succeeds(&mut ip), "{command}");
    }

    /// Returns the bytes that the server has received on an interface.
    fn received_on(&self, interface: &str) -> u64 {
        let file = format!("/sys/class/net/{interface}/statistics/rx_bytes");
        let mut cat = inside(&self.server, "cat");
        let read = cat.arg(file).stdout(Stdio::piped()).output();
        let text = String::from_utf8(read.expect("cat starts").stdout).expect("UTF-8");
        text.trim().parse().expect("a number")
    }

    /// Drops and counts packets that match a rule of nftables when they arrive in a namespace.
    fn filter(&self, namespace: &str, rule: &str) -> bool {
        let rule = match rule {
            "" => String::new(),
            rule => format!("{rule} counter drop;"),
        };
        // Delete the table of an earlier call first: its rules would remain.
        let table = format!(
            "table ip courser\ndelete table ip courser\ntable ip courser {{\nchain input {{\ntype filter hook input priority 0;\n{rule}\n}}\n}}\n"
        );
        let mut nft = inside(namespace, "nft");
        nft.args(["-f", "-"]).stdin(Stdio::piped());
        let Ok(mut nft) = nft.spawn() else {
            return false;
        };
        let mut input = nft.stdin.take().expect("piped");
        let written = input.write_all(table.as_bytes());
        drop(input);
        written.is_ok() && nft.wait().is_ok_and(|status| status.success())
    }

    /// Returns the number of packets that the filter of a namespace has dropped.
    fn dropped(&self, namespace: &str) -> u64 {
        let mut nft = inside(namespace, "nft");
        let list = nft
            .args(["list", "ruleset"])
            .stdout(Stdio::piped())
            .output();
        let text = String::from_utf8(list.expect("nft starts").stdout).expect("UTF-8");
        let counts = text.split("packets ").skip(1);
        counts
            .filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok())
            .sum()
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in [&self.server, &self.client] {
            succeeds(Command::new("ip").args(["netns", "delete", name]));
        }
    }
}

/// Returns a command that runs a program in a namespace.
fn inside(namespace: &str, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, program]);
    command.stderr(Stdio::null()).stdout(Stdio::null());
    command
}

fn succeeds(command: &mut Command) -> bool {
    let silent = command.stderr(Stdio::null()).stdout(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// A perf server in its namespace, killed at the end.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(namespaces: &Namespaces) -> Self {
        Self::start_as(namespaces, &["perf", "server"])
    }

    /// Starts a command that listens on an address and reports it as JSON.
    fn start_as(namespaces: &Namespaces, command: &[&str]) -> Self {
        let listen = format!("{SERVER}:0");
        let program = courser(&[]).get_program().to_owned();
        let mut child = inside(&namespaces.server, &program.to_string_lossy())
            .args(command)
            .args(["--listen", &listen, "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        lines.read_line(&mut line).expect("UTF-8");
        let event: Value = serde_json::from_str(&line).expect("an event");
        let address = event["address"].as_str();
        let address = address.or_else(|| event["addresses"][0].as_str());
        let address = address.expect("an address").to_owned();
        Self { child, address }
    }

    /// Transfers three megabytes and returns the report.
    fn transfer(&self, namespaces: &Namespaces, scenario: &str) -> Value {
        let flags = ["--scenario", scenario, "--number", "3M", "--json"];
        let Output {
            status,
            stdout,
            stderr,
        } = self.measure(namespaces, &flags);
        let error = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{scenario}: {error}");
        serde_json::from_slice(&stdout).expect("a report")
    }

    /// Runs a client with these flags.
    fn measure(&self, namespaces: &Namespaces, flags: &[&str]) -> Output {
        let program = courser(&[]).get_program().to_owned();
        inside(&namespaces.client, &program.to_string_lossy())
            .args(["perf", "client", &self.address, "--insecure"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .expect("the binary starts")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Matches batches of segmentation offload, which cross the pair as one packet, but not single datagrams.
const BATCHES: &str = "meta l4proto udp meta length > 1500";

#[test]
fn transfers_succeed_over_a_device_that_drops_batches() {
    for loses in [(true, false), (false, true), (true, true)] {
        let Some(namespaces) = Namespaces::new() else {
            return;
        };
        let (to_server, to_client) = loses;
        let rule = |is_lossy| if is_lossy { BATCHES } else { "" };
        assert!(namespaces.filter(&namespaces.server, rule(to_server)));
        assert!(namespaces.filter(&namespaces.client, rule(to_client)));
        let server = Server::start(&namespaces);
        let upload = server.transfer(&namespaces, "upload");
        let segments = &upload["network"]["gso_segments"];
        assert_eq!(*segments == 1, to_server, "{loses:?}: {upload}");
        server.transfer(&namespaces, "download");
        let dropped = [&namespaces.server, &namespaces.client].map(|it| namespaces.dropped(it) > 0);
        assert_eq!(
            dropped,
            [to_server, to_client],
            "drops at the server and the client"
        );
    }
}

#[test]
fn transfers_succeed_over_a_path_that_drops_ecn_marks() {
    let Some(namespaces) = Namespaces::new() else {
        return;
    };
    for namespace in [&namespaces.server, &namespaces.client] {
        assert!(namespaces.filter(namespace, "meta l4proto udp ip ecn ect0"));
    }
    let server = Server::start(&namespaces);
    let upload = server.transfer(&namespaces, "upload");
    assert_eq!(upload["network"]["ecn"], false, "{upload}");
    server.transfer(&namespaces, "download");
    assert_ne!(namespaces.dropped(&namespaces.server), 0);
}

/// Runs `courser doctor HOST` at the client and returns its findings.
fn examine(namespaces: &Namespaces, host: &str) -> Vec<Value> {
    let program = courser(&[]).get_program().to_owned();
    let output = inside(&namespaces.client, &program.to_string_lossy())
        .args(["doctor", "--json", host])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .output()
        .expect("the binary starts");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    report["findings"].as_array().expect("a list").clone()
}

fn severity<'a>(findings: &'a [Value], check: &str) -> &'a str {
    let finding = findings.iter().find(|it| it["check"] == check);
    let finding = finding.unwrap_or_else(|| panic!("{check} in {findings:#?}"));
    finding["severity"].as_str().expect("a word")
}

/// Loopback and the route to a server drop nothing, then batches, then marked packets.
#[test]
fn doctor_detects_silent_drops_on_loopback_and_a_route() {
    let Some(namespaces) = Namespaces::new() else {
        return;
    };
    let folder = Folder::new();
    let path = folder.path().to_str().expect("UTF-8");
    let keys = folder.path().join("keys");
    let keys = keys.to_str().expect("UTF-8");
    let server = Server::start_as(&namespaces, &["serve", path, "--tls-dev-dir", keys]);
    for (rule, lost) in [
        ("", None),
        (BATCHES, Some("batches")),
        ("meta l4proto udp ip ecn ect0", Some("ECN marks")),
    ] {
        for namespace in [&namespaces.server, &namespaces.client] {
            assert!(namespaces.filter(namespace, rule));
        }
        let found = examine(&namespaces, &server.address);
        for place in ["over loopback", "on the route"] {
            for feature in ["batches", "ECN marks"] {
                let found = severity(&found, &format!("{feature} {place}"));
                let is_lost = lost == Some(feature);
                assert_eq!(found == "warning", is_lost, "{feature} {place}, {rule:?}");
            }
        }
        // Packets that a filter drops are not an error of GRO.
        assert_ne!(severity(&found, "GRO"), "error", "{rule:?}");
    }
}

#[test]
fn doctor_reads_the_rules_of_a_firewall() {
    let Some(namespaces) = Namespaces::new() else {
        return;
    };
    let firewall = || {
        let program = courser(&[]).get_program().to_owned();
        let mut doctor = inside(&namespaces.server, &program.to_string_lossy());
        let doctor = doctor.args(["doctor", "--json"]).stdout(Stdio::piped());
        let output = doctor.output().expect("doctor starts").stdout;
        let report: Value = serde_json::from_slice(&output).expect("JSON");
        let findings = report["findings"].as_array().expect("a list").iter();
        let mut found = findings.filter(|it| it["check"] == "firewall").cloned();
        found.next().expect("a finding")
    };
    for (rule, severity, part) in [
        ("udp dport 53", "ok", "do not drop UDP to port 443"),
        ("tcp dport 443", "ok", "do not drop UDP to port 443"),
        (
            "udp dport { 80, 400-500 }",
            "warning",
            "seems closed: udp dport { 80, 400-500 } counter packets 0 bytes 0 drop",
        ),
        ("ip saddr 198.18.0.2 udp dport 443", "note", "cannot judge"),
        ("udp dport 443 accept; udp dport 443", "ok", "do not drop"),
        (
            "udp dport 443 reject; udp dport 443",
            "warning",
            "seems closed: udp dport 443 reject",
        ),
    ] {
        assert!(namespaces.filter(&namespaces.server, rule), "{rule}");
        let found = firewall();
        assert_eq!(found["severity"], severity, "{rule}: {found}");
        let saw = found["saw"].as_str().expect("text");
        assert!(saw.contains(part), "{rule}: {saw}");
    }
}

/// `perf client --path` sends over both links, reports both, and says why it cannot.
#[test]
fn further_paths_carry_data_from_their_addresses() {
    let Some(namespaces) = Namespaces::new() else {
        return;
    };
    namespaces.add_link();
    let server = Server::start(&namespaces);
    for scenario in ["upload", "download"] {
        let before = ["veth0", "veth1"].map(|it| namespaces.received_on(it));
        let flags = ["-s", scenario, "-n", "20M", "--path", SECOND, "--json"];
        let output = server.measure(&namespaces, &flags);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{scenario}: {error}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        let paths = report["network"]["paths"].as_array().expect("paths");
        let of = |key: &str| {
            paths
                .iter()
                .map(|path| path[key].clone())
                .collect::<Vec<_>>()
        };
        // The system chooses the address of the first one.
        assert_eq!(of("local"), [Value::Null, SECOND.into()], "{report}");
        // A path that missed a probe timeout on a busy machine is a backup for a while.
        let states = of("state");
        let is_open = |state: &Value| ["data", "backup", "silent"].iter().any(|it| state == it);
        assert!(states.iter().all(is_open), "{report}");
        let after = ["veth0", "veth1"].map(|it| namespaces.received_on(it));
        let least = if scenario == "upload" { 20_000 } else { 1_000 };
        let [first, second] = [after[0] - before[0], after[1] - before[1]];
        assert!(
            first > least && second > least,
            "{scenario}: {first} and {second} bytes"
        );
    }
    let text = server.measure(&namespaces, &["-n", "1M", "--path", SECOND]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with("path 1 "));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains(&format!("{SECOND} to {SERVER}:")), "{line}");
    assert!(
        line.contains(": data, ") && line.contains(" % of all bytes, "),
        "{line}"
    );
    let elsewhere = server.measure(&namespaces, &["-n", "1M", "--path", "203.0.113.9"]);
    let error = String::from_utf8_lossy(&elsewhere.stderr);
    assert!(!elsewhere.status.success(), "{error}");
    assert!(
        error.contains("no path through 203.0.113.9: cannot send through it: "),
        "{error}"
    );
}

/// Links are named by their interfaces, without any rule for source addresses.
#[test]
fn further_paths_begin_at_interfaces() {
    let Some(namespaces) = Namespaces::new() else {
        return;
    };
    namespaces.add_link();
    namespaces.change_client(&format!("rule delete from {SECOND} table 7"));
    let server = Server::start(&namespaces);
    let before = namespaces.received_on("veth1");
    let flags = ["-s", "upload", "-n", "20M", "--path", "veth1", "--json"];
    let output = server.measure(&namespaces, &flags);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let shares: Vec<f64> = report["network"]["paths"]
        .as_array()
        .expect("paths")
        .iter()
        .map(|path| path["share"].as_f64().expect("a share"))
        .collect();
    assert!(
        matches!(shares[..], [first, second] if first > 0.0 && second > 0.0),
        "{report}"
    );
    let received = namespaces.received_on("veth1") - before;
    assert!(
        received as f64 > 20e6 * shares[1] * 0.9,
        "{received} {report}"
    );
    let output = server.measure(&namespaces, &["-n", "1M", "--path", "wwan7"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("no path through wwan7: cannot send through it: No such device"),
        "{error}"
    );
}

/// Starts a transfer of 20 MB over these links. Its output has the size and the paths.
fn get_over(namespaces: &Namespaces, server: &Server, links: &[&str], more: &[&str]) -> Child {
    let program = courser(&[]).get_program().to_owned();
    let mut get = inside(&namespaces.client, &program.to_string_lossy());
    get.args(["get", "--insecure", "--http3-only", "--silent"]);
    get.args(["--show-error", "--output", "/dev/null"]);
    get.args(["--write-out", "%{size_download} %{paths}"]);
    for link in links {
        get.args(["--via", link]);
    }
    get.args(more)
        .arg(format!("https://{}/file", server.address));
    get.stdin(Stdio::null());
    get.stdout(Stdio::piped()).stderr(Stdio::piped());
    get.spawn().expect("the binary starts")
}

/// Waits for the end of a complete transfer. Returns its paths and its messages.
fn paths_of(child: Child) -> (Vec<Value>, String) {
    let output = child.wait_with_output().expect("ends");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let (size, paths) = text.split_once(' ').expect("two values");
    assert_eq!(size, "20000000");
    (serde_json::from_str(paths).expect("paths"), error)
}

/// `get --via` transfers over two links at once, and over the one that is left when the other one fails.
#[test]
fn transfers_over_two_links_survive_the_loss_of_one() {
    let Some(namespaces) = Namespaces::new() else {
        return;
    };
    namespaces.add_link();
    let folder = Folder::new();
    let file = folder.path().join("file");
    std::fs::write(file, vec![7; 20_000_000]).expect("our folder");
    let root = folder.path().to_str().expect("UTF-8");
    let server = Server::start_as(&namespaces, &["serve", root, "--paths", "2"]);
    let get = |links: &[&str], more: &[&str]| get_over(&namespaces, &server, links, more);
    let received = |path: &Value| path["bytes_received"].as_u64().expect("a number");
    // On a busy machine a path may miss a probe timeout, and is left for a while.
    let holds_once = |links: &[&str], holds: &dyn Fn(&[Value]) -> bool| {
        let mut last = Vec::new();
        let held = (0..5).any(|_| {
            last = paths_of(get(links, &[])).0;
            last.len() == 2 && holds(&last)
        });
        assert!(held, "{links:?}: {last:?}");
    };
    holds_once(&["veth0", "veth1"], &|paths| {
        paths.iter().all(|path| received(path) > 20_000)
    });
    holds_once(&["veth0", "veth1,backup"], &|paths| {
        paths[1]["state"] == "backup" && received(&paths[1]) < 100_000
    });
    let (_, error) = paths_of(get(&["veth0", "wwan7"], &[]));
    assert!(error.contains("no path through wwan7: "), "{error}");
    for (down, up) in [
        ("link set veth0 down", "link set veth0 up"),
        (
            "address delete 198.18.0.2/30 dev veth0",
            "address add 198.18.0.2/30 dev veth0",
        ),
    ] {
        let slow = ["--limit-rate", "8M", "--max-time", "20"];
        let child = get(&["veth0", "veth1"], &slow);
        std::thread::sleep(Duration::from_millis(900));
        namespaces.change_client(down);
        let (paths, _) = paths_of(child);
        namespaces.change_client(up);
        let open = paths.iter().filter(|path| path["state"] == "data");
        let ids: Vec<_> = open.map(|path| path["id"].clone()).collect();
        assert!(ids.contains(&Value::from(1)), "{down}: {paths:?}");
    }
}
