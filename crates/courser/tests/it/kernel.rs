//! Errors of a real kernel, in network namespaces: interfaces that are removed, routes that refuse, a firewall.
//!
//! Needs root, `ip` and `nft`, and prints a line that begins with SKIPPED without them. Each end is this test
//! binary, started again in its namespace; [`role`] is the whole program of both.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use courser::{ClientConfig, Endpoint, ErrorCause, Identity, ServerConfig, TransportConfig};
use rustls::pki_types::CertificateDer;

use crate::common::spawn;

/// Time after which a test fails instead of hanging, for a machine under load.
const PATIENCE: Duration = Duration::from_secs(60);
/// The variable with the role of a process and its arguments.
const ROLE: &str = "COURSER_KERNEL_ROLE";

/// Prints a line of its own: the test harness may have begun one.
macro_rules! say {
    ($($text:tt)*) => {
        println!("\n{}", format_args!($($text)*))
    };
}

/// Two namespaces with an interface each, which are connected.
struct Lab {
    near: String,
    far: String,
}

impl Lab {
    /// Returns `None` and prints the reason if this machine allows no namespaces.
    fn new(name: &str) -> Option<Self> {
        let lab = Self {
            near: format!("ck{name}a{}", std::process::id()),
            far: format!("ck{name}b{}", std::process::id()),
        };
        let (near, far) = (&lab.near, &lab.far);
        let begins = run(&["ip", "netns", "add", near]) && run(&["ip", "netns", "add", far]);
        if !begins {
            println!("SKIPPED: needs root, and ip and nft, to create network namespaces");
            return None;
        }
        let steps: &[&[&str]] = &[
            &[
                "ip", "-n", near, "link", "add", "ck0", "type", "veth", "peer", "name", "ck1",
            ],
            &["ip", "-n", near, "link", "set", "ck1", "netns", far],
            &[
                "ip",
                "-n",
                near,
                "addr",
                "add",
                "fe80::a/64",
                "dev",
                "ck0",
                "nodad",
            ],
            &[
                "ip",
                "-n",
                far,
                "addr",
                "add",
                "fe80::b/64",
                "dev",
                "ck1",
                "nodad",
            ],
            &[
                "ip",
                "-n",
                near,
                "addr",
                "add",
                "10.77.1.1/24",
                "dev",
                "ck0",
            ],
            &["ip", "-n", far, "addr", "add", "10.77.1.2/24", "dev", "ck1"],
            &["ip", "-n", near, "link", "set", "lo", "up"],
            &["ip", "-n", near, "link", "set", "ck0", "up"],
            &["ip", "-n", far, "link", "set", "ck1", "up"],
        ];
        if steps.iter().all(|step| run(step)) {
            return Some(lab);
        }
        println!("SKIPPED: this kernel has no veth interfaces");
        None
    }

    fn near(&self, command: &[&str]) {
        let command = [&["ip", "netns", "exec", &self.near], command].concat();
        assert!(run(&command), "{command:?}");
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in [&self.near, &self.far] {
            run(&["ip", "netns", "del", name]);
        }
    }
}

/// Runs a command. Returns true if it succeeds.
fn run(command: &[&str]) -> bool {
    let status = Command::new(command[0])
        .args(&command[1..])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// A process in a namespace, and the lines that it has printed.
struct End {
    process: Child,
    lines: Receiver<String>,
}

impl End {
    fn start(namespace: &str, role: &str) -> Self {
        let this = std::env::current_exe().expect("a path");
        let mut process = Command::new("ip")
            .args(["netns", "exec", namespace])
            .arg(this)
            .args(["kernel::role", "--exact", "--nocapture"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("ip was there before");
        let output = process.stdout.take().expect("a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { process, lines }
    }

    /// Waits for a line that begins with `word`, and returns the rest.
    fn wait_for(&self, word: &str) -> String {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => match line.strip_prefix(word) {
                    Some(rest) => return rest.trim().to_owned(),
                    None => seen.push(line),
                },
                Err(_) => panic!("no line {word:?} after {seen:#?}"),
            }
        }
    }

    fn send_line(&mut self, line: &str) {
        let input = self.process.stdin.as_mut().expect("a pipe");
        writeln!(input, "{line}").expect("it reads");
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One client has a link-local address, and its interface is removed: a send to it fails with ENODEV. A client
/// of another interface, and later ones, are served on.
#[test]
fn removed_interface_of_one_client_leaves_others_connected() {
    let Some(lab) = Lab::new("i") else {
        return;
    };
    let mut server = End::start(&lab.near, "server");
    let ready = server.wait_for("READY");
    let far = End::start(&lab.far, &format!("quinn {ready}"));
    far.wait_for("CONNECTED");
    lab.near(&["ip", "link", "del", "ck0"]);
    // The server keeps sending to the removed address.
    server.wait_for("FAILED unreachable");
    server.send_line("ask");
    server.wait_for("ANSWERED");
    server.send_line("ask again");
    server.wait_for("ANSWERED");
}

/// Routes that refuse and a firewall, one after the other, towards the only client of a server. Each costs the
/// time that it lasts.
#[test]
fn refusing_routes_and_firewalls_cost_only_their_duration() {
    let Some(lab) = Lab::new("r") else {
        return;
    };
    let server = End::start(&lab.near, "server");
    let ready = server.wait_for("READY");
    let far = End::start(&lab.far, &format!("client {ready}"));
    far.wait_for("PONG");
    let route = |change, kind| ["ip", "route", change, kind, "10.77.1.2/32"];
    for (kind, cause) in [
        ("unreachable", "unreachable"),
        ("prohibit", "not_permitted"),
        ("blackhole", "invalid"),
    ] {
        lab.near(&route("add", kind));
        server.wait_for(&format!("FAILED {cause}"));
        lab.near(&route("del", kind));
        after(&far);
    }
    if !run(&["nft", "--version"]) {
        println!("SKIPPED: the firewall, because nft is missing");
        return;
    }
    let rules = "table inet ck { chain out { type filter hook output priority 0; \
                 ip daddr 10.77.1.2 udp sport 4433 drop; }; }";
    lab.near(&["nft", rules]);
    server.wait_for("FAILED not_permitted");
    lab.near(&["nft", "delete table inet ck"]);
    after(&far);
}

/// Waits for an answer to a question that was asked after this call.
fn after(client: &End) {
    while client.lines.try_recv().is_ok() {}
    // The answer to an earlier question.
    client.wait_for("PONG");
    client.wait_for("PONG");
}

/// Runs the role that the environment names, in a separate process. Does nothing in the process of the tests.
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads");
    let mut words = role.split(' ');
    let part = words.next().expect("a role");
    let certificate = words.next().map(from_hex);
    match (part, certificate) {
        ("server", _) => runtime.block_on(serve()),
        ("quinn", Some(certificate)) => runtime.block_on(connect_with_quinn(certificate)),
        ("client", Some(certificate)) => runtime.block_on(ask_repeatedly(certificate)),
        other => panic!("{other:?}"),
    }
}

fn settings() -> Arc<TransportConfig> {
    Arc::new(TransportConfig {
        max_idle_timeout: Some(PATIENCE),
        keep_alive_interval: Some(Duration::from_millis(100)),
        ..TransportConfig::default()
    })
}

/// Serves all addresses, and connects to itself over the loopback interface on request.
async fn serve() {
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity)
        .expect("matching key")
        .alpn(["test"])
        .transport_config(settings());
    let address = "[::]:4433".parse().expect("an address");
    let server = Endpoint::server(config, address).expect("the namespace is new");
    let accepting = server.clone();
    spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            spawn(async move {
                let Ok(connection) = incoming.await else {
                    return;
                };
                // Something is always on its way to each client.
                let sending = connection.clone();
                spawn(async move {
                    let (mut stream, mut pace) = (sending.open_uni().await.expect("open"), pace());
                    while stream.write_all(b"and on").await.is_ok() {
                        pace.tick().await;
                    }
                });
                while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                    let _ = tokio::io::copy(&mut receive, &mut send).await;
                    let _ = send.finish();
                }
            });
        }
        say!("OVER");
    });
    // Prints the causes of errors since the last line.
    let counted = server.clone();
    spawn(async move {
        let (mut before, mut pace) = (HashMap::<ErrorCause, u64>::new(), pace());
        loop {
            for (cause, count) in counted.socket_counters().send_errors.iter() {
                if before.insert(cause, count).unwrap_or(0) < count {
                    say!("FAILED {}", cause.name());
                }
            }
            pace.tick().await;
        }
    });
    let config = client_config(identity.certificate());
    let near = Endpoint::client("[::1]:0".parse().expect("an address")).expect("a port");
    let connect = || {
        near.connect_with(
            config.clone(),
            "[::1]:4433".parse().expect("an address"),
            "localhost",
        )
    };
    let connection = connect().expect("reachable").await.expect("a handshake");
    say!("READY {}", to_hex(&identity.certificate()));
    let (sender, mut words) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for word in std::io::stdin().lines().map_while(Result::ok) {
            let _ = sender.send(word);
        }
    });
    while let Some(word) = words.recv().await {
        if word == "ask again" {
            let another = connect().expect("reachable").await.expect("a handshake");
            ask(&another).await;
        } else {
            ask(&connection).await;
        }
        say!("ANSWERED");
    }
}

fn client_config(certificate: CertificateDer<'static>) -> ClientConfig {
    ClientConfig::with_roots([certificate])
        .expect("a certificate")
        .alpn(["test"])
        .transport_config(settings())
}

async fn ask(connection: &courser::Connection) {
    let (mut send, mut receive) = connection.open_bi().await.expect("open");
    send.write_all(b"question").await.expect("open");
    send.finish().expect("open");
    let answer = receive.read_to_end(100).await.expect("answered");
    assert_eq!(answer, b"question");
}

/// Asks a server at its IPv4 address, one question after the other.
async fn ask_repeatedly(certificate: Vec<u8>) {
    let config = client_config(certificate.into());
    let client = Endpoint::client(SocketAddr::from(([10, 77, 1, 2], 0))).expect("a port");
    let server = SocketAddr::from(([10, 77, 1, 1], 4433));
    let connecting = client.connect_with(config, server, "localhost");
    let connection = connecting.expect("reachable").await.expect("a handshake");
    let mut pace = pace();
    loop {
        ask(&connection).await;
        say!("PONG");
        pace.tick().await;
    }
}

/// Connects to the link-local address of a server, and stays.
async fn connect_with_quinn(certificate: Vec<u8>) {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.into()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("supported")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"test".to_vec()];
    let tls = quinn::crypto::rustls::QuicClientConfig::try_from(tls).expect("has TLS 1.3");
    let client = quinn::Endpoint::client("[::]:0".parse().expect("an address")).expect("a port");
    let index = std::fs::read_to_string("/sys/class/net/ck1/ifindex").expect("exists");
    let scope = index.trim().parse().expect("a number");
    let address = "fe80::a".parse().expect("an address");
    let server = SocketAddr::from(std::net::SocketAddrV6::new(address, 4433, 0, scope));
    let config = quinn::ClientConfig::new(Arc::new(tls));
    let connecting = client
        .connect_with(config, server, "localhost")
        .expect("configured");
    let connection = connecting.await.expect("a handshake");
    let mut stream = connection.accept_uni().await.expect("open");
    let mut bytes = [0; 6];
    stream.read_exact(&mut bytes).await.expect("open");
    say!("CONNECTED");
    while stream.read_exact(&mut bytes).await.is_ok() {}
}

/// The interval between periodic messages of both ends.
fn pace() -> tokio::time::Interval {
    tokio::time::interval(Duration::from_millis(10))
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(pair, 16).expect("a byte")
    };
    digits.map(byte).collect()
}
