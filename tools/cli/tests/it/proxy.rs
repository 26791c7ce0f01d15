//! `courser sim proxy` between real programs.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Server, courser, number, refusal, run, skipped};
use serde_json::Value;

/// A proxy in its own process, killed on drop.
pub(crate) struct Proxy {
    child: Child,
    lines: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

impl Proxy {
    /// Starts a proxy in front of `to`.
    pub(crate) fn start(to: SocketAddr, link: &str, more: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", to, link, more)
    }

    /// Starts a proxy with an address for clients.
    fn start_at(listen: &str, to: SocketAddr, link: &str, more: &[&str]) -> Self {
        let to = to.to_string();
        let arguments = [
            &["sim", "proxy", "--listen", listen, "--to", &to][..],
            &["--link", link, "--json"],
            more,
        ]
        .concat();
        let mut child = courser(&arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut proxy = Self {
            child,
            lines,
            address: unknown,
        };
        let event = proxy.next_event();
        assert_eq!(event["event"], "listening", "{event}");
        let address = event["address"].as_str().expect("an address");
        proxy.address = address.parse().expect("an address");
        proxy
    }

    fn next_event(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("UTF-8");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Ends the proxy and returns its report.
    fn report(mut self) -> Value {
        use rustix::process::{Pid, Signal, kill_process};
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("a running process");
        let report = self.next_event();
        assert_eq!(report["event"], "report", "{report}");
        assert!(self.child.wait().expect("our file").success());
        report
    }

    /// Runs a perf client through the proxy and returns its report.
    fn perf(&self, arguments: &[&str]) -> Value {
        let address = self.address.to_string();
        let client = ["perf", "client", &address, "--insecure", "--json"];
        // Machines that run many tests at once are slow.
        let client = [&client[..], &["--connect-timeout", "60"]].concat();
        let output = run(&[&client[..], arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let timeout = Some(Duration::from_secs(1));
    socket.set_read_timeout(timeout).expect("a valid time");
    socket
}

/// Returns the datagrams received until a pause.
fn received(socket: &UdpSocket) -> Vec<(Vec<u8>, SocketAddr)> {
    let mut buffer = [0; 2048];
    let mut all = Vec::new();
    while let Ok((len, from)) = socket.recv_from(&mut buffer) {
        all.push((buffer[..len].to_vec(), from));
    }
    all
}

#[test]
fn listed_drops_and_counters_are_exact() {
    let (server, client) = (socket(), socket());
    let proxy = Proxy::start(
        server.local_addr().expect("bound"),
        "1ms,drop=2-7",
        &["--link-back", "drop=1"],
    );
    for number in 1..=10_u8 {
        client.send_to(&[number; 100], proxy.address).expect("sent");
        std::thread::sleep(Duration::from_millis(2));
    }
    let arrived = received(&server);
    let numbers: Vec<u8> = arrived.iter().map(|(payload, _)| payload[0]).collect();
    assert_eq!(numbers, [1, 8, 9, 10]);
    let upstream = arrived[0].1;
    for number in 1..=3_u8 {
        server.send_to(&[number; 200], upstream).expect("sent");
    }
    let answers = received(&client);
    assert_eq!(answers.len(), 2);
    assert!(answers.iter().all(|(_, from)| *from == proxy.address));

    let report = proxy.report();
    assert_eq!(number(&report, "clients"), 1.0);
    assert_eq!(number(&report, "there.packets_in"), 10.0);
    assert_eq!(number(&report, "there.dropped.listed"), 6.0);
    assert_eq!(number(&report, "there.packets_out"), 4.0);
    assert_eq!(number(&report, "back.dropped.listed"), 1.0);
    assert_eq!(number(&report, "kernel_drops"), 0.0);
    // The client sent 1000 bytes and received 400; the server received 400 and sent 600.
    assert_eq!(number(&report, "amplification.total"), 0.4);
    assert_eq!(number(&report, "amplification.worst"), 1.5);
}

#[test]
fn delay_applies_to_both_directions() {
    let (server, client) = (socket(), socket());
    let proxy = Proxy::start(server.local_addr().expect("bound"), "rtt=100ms", &[]);
    let start = Instant::now();
    client.send_to(b"ping", proxy.address).expect("sent");
    let mut buffer = [0; 16];
    let (len, from) = server.recv_from(&mut buffer).expect("arrives");
    server.send_to(&buffer[..len], from).expect("sent");
    client.recv_from(&mut buffer).expect("arrives");
    let rtt = start.elapsed();
    assert_eq!(&buffer[..len], b"ping");
    // Datagrams are never early. Their lateness depends on other load on the machine.
    assert!((100..2_000).contains(&rtt.as_millis()), "{rtt:?}");
}

#[test]
fn rate_is_held_within_five_percent() {
    let (server, client) = (socket(), socket());
    let proxy = Proxy::start(server.local_addr().expect("bound"), "8mbit,queue=5M", &[]);
    let sender = std::thread::spawn({
        let address = proxy.address;
        move || {
            // The client sends 4000 datagrams of 1000 bytes and headers, much faster than the rate.
            for number in 0..4_000_u32 {
                let mut payload = [0; 972];
                payload[..4].copy_from_slice(&number.to_be_bytes());
                client.send_to(&payload, address).expect("sent");
                if number % 50 == 49 {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
    });
    let mut buffer = [0; 2048];
    let mut arrivals = Vec::new();
    while server.recv_from(&mut buffer).is_ok() {
        let number = buffer.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        arrivals.push((number.expect("long enough"), Instant::now()));
    }
    sender.join().expect("sent all");
    // The socket of the test holds a tenth of a second and may overflow. The numbers in the datagrams
    // show what was on the link.
    assert!(arrivals.len() > 3_000, "{}", arrivals.len());
    assert!(arrivals.is_sorted_by(|one, next| one.0 < next.0));
    // The first datagram may have come before the queue was in use.
    let (first, start) = arrivals[200];
    let (last, end) = arrivals[arrivals.len() - 1];
    let packets_per_second = f64::from(last - first) / (end - start).as_secs_f64();
    assert!(
        (950.0..1_050.0).contains(&packets_per_second),
        "{packets_per_second} packets/s instead of 1000"
    );
    let report = proxy.report();
    assert_eq!(number(&report, "kernel_drops"), 0.0);
    assert_eq!(number(&report, "there.dropped_total"), 0.0);
    assert_eq!(number(&report, "there.packets_out"), 4_000.0);
    assert!(number(&report, "there.queue_delay.max_seconds") > 0.1);
}

#[test]
fn loss_is_counted_and_transfers_succeed() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.address, "5ms,5%", &["--seed", "3"]);
    let client = proxy.perf(&["-n", "2M", "--mtu", "1452"]);
    assert_eq!(number(&client, "end.sent_bytes"), 2e6);
    let report = proxy.report();
    let lost = number(&report, "there.dropped.loss");
    let share = lost / number(&report, "there.packets_in");
    assert!((0.03..0.07).contains(&share), "{report:#}");
    assert!(number(&report, "back.dropped.loss") > 0.0, "{report:#}");
    // A server may send three times what it has received before the address is validated.
    let worst = number(&report, "amplification.worst");
    assert!(worst > 0.0 && worst <= 3.0, "{worst}");
}

#[test]
fn lost_and_reordered_datagrams_are_counted_by_both_ends() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.address, "5ms,10%,reorder=10%:20ms", &["--seed", "5"]);
    let flags = ["-s", "datagram", "--bidir", "-n", "1000", "--rate", "8M"];
    let report = proxy.perf(&flags);
    for direction in ["upload", "download"] {
        let flow = &report["end"]["datagrams"][direction];
        let [sent, received, lost] = ["sent", "received", "lost"].map(|name| number(flow, name));
        assert_eq!(sent, 1000.0, "{report:#}");
        assert_eq!(received + lost, sent, "{report:#}");
        assert!((50.0..160.0).contains(&lost), "{report:#}");
        assert!(number(flow, "reordered") > 10.0, "{report:#}");
        assert_eq!(number(flow, "duplicated"), 0.0, "{report:#}");
    }
}

#[test]
fn connections_survive_rebinding() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(
        server.address,
        "5ms,20mbit,rebind=addr:500ms",
        &["--seed", "7"],
    );
    let client = proxy.perf(&["-n", "4M"]);
    assert_eq!(number(&client, "end.sent_bytes"), 4e6);
    let report = proxy.report();
    assert!(number(&report, "rebindings") >= 2.0, "{report:#}");
    // A perf client has two sockets, one for the server's counters.
    assert!(number(&report, "clients") <= 2.0, "{report:#}");
    // The 4 MB were sent only once.
    let bytes = number(&report, "there.bytes_in");
    assert!((4e6..8e6).contains(&bytes), "{bytes}");
}

#[test]
fn replies_to_an_old_port_are_dropped() {
    let (server, client) = (socket(), socket());
    let address = server.local_addr().expect("bound");
    let proxy = Proxy::start(address, "rebind=1s:never", &[]);
    client.send_to(b"1", proxy.address).expect("sent");
    let before = received(&server)[0].1;
    let mut after = before;
    while after == before {
        client.send_to(b"2", proxy.address).expect("sent");
        after = received(&server)[0].1;
    }
    assert_eq!(after.ip(), before.ip());
    assert_ne!(after.port(), before.port());
    server.send_to(b"late", before).expect("sent");
    server.send_to(b"right", after).expect("sent");
    let answers = received(&client);
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].0, b"right");
    let report = proxy.report();
    assert_eq!(number(&report, "late_replies"), 1.0);
    assert_eq!(number(&report, "rebindings"), 1.0);
    assert_eq!(number(&report, "clients"), 1.0);
}

#[test]
fn text_and_json_agree() {
    let (server, client) = (socket(), socket());
    let to = server.local_addr().expect("bound").to_string();
    let mut child = courser(&[
        "sim",
        "proxy",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &to,
        "--link",
        "first=1",
        "--time",
        "3",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut next = || lines.next().expect("a line").expect("UTF-8");
    let announced = next();
    let address = announced.split_whitespace().nth(2).expect("an address");
    client.send_to(b"one", address).expect("sent");
    client.send_to(b"two", address).expect("sent");
    let text: Vec<String> = (0..9).map(|_| next()).collect();
    let text = text.join("\n");
    for expected in [
        "link        drop=1 (seed 1)",
        "to server   2 in (6 B), 1 out (3 B)",
        "1 dropped by number",
        "clients     1, 0 rebindings",
        "bytes to clients per byte from them",
        "0 buffers dropped by the kernel",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(child.wait().expect("our file").success());
}

#[test]
fn invalid_arguments_are_reported_in_one_line() {
    let proxy = ["sim", "proxy", "--listen", "127.0.0.1:0", "--to"];
    let with = |more: &[&str]| refusal(&[&proxy[..], more].concat());
    let cases: [(&[&str], &str); 7] = [
        (&["127.0.0.1:9", "--link", "lss=1%"], "did you mean 'loss'?"),
        (
            &["127.0.0.1:9", "--link", "20mbps"],
            "write other fields as NAME=VALUE",
        ),
        (
            &["127.0.0.1:9", "--link-back", "rebind=1s"],
            "rebind: applies to both directions",
        ),
        (&["127.0.0.1"], "'127.0.0.1' is not HOST:PORT"),
        (&["nosuch.invalid:1"], "cannot resolve 'nosuch.invalid:1'"),
        (
            &["192.0.2.1:9", "--link", "rebind=addr:1s"],
            "needs a server on 127.0.0.0/8",
        ),
        (
            &["127.0.0.1:9", "--max-clients", "5000"],
            "5000 is not between 1 and 900",
        ),
    ];
    for (more, expected) in cases {
        let line = with(more);
        assert!(line.contains(expected), "{more:?}: {line}");
    }
    let wrong = run(&[&proxy[..], &["127.0.0.1:9", "--link", "lss=1%"]].concat());
    assert_eq!(wrong.status.code(), Some(2));
    let other = socket();
    let address = other.local_addr().expect("bound").to_string();
    let line = refusal(&["sim", "proxy", "--listen", &address, "--to", "127.0.0.1:9"]);
    assert!(line.contains("the port is in use"), "{line}");
}

/// A link with a delay but without a rate has no queue, so that `--hold` is the only limit.
#[test]
fn packets_on_a_link_are_bounded_and_counted() {
    let (server, client) = (socket(), socket());
    let address = server.local_addr().expect("bound");
    // All arrive before the first one is released, also on a busy machine. They fit into the receive buffer of the
    // proxy, which may read them late.
    let proxy = Proxy::start(address, "1500ms", &["--hold", "5k"]);
    for _ in 0..80 {
        client.send_to(&[1; 250], proxy.address).expect("sent");
    }
    let (short_timeout, mut first) = (server.read_timeout().expect("a socket"), [0; 1]);
    let timeout = Some(Duration::from_secs(30));
    server.set_read_timeout(timeout).expect("a valid time");
    server.peek(&mut first).expect("a datagram");
    server
        .set_read_timeout(short_timeout)
        .expect("a valid time");
    assert_eq!(received(&server).len(), 20);
    let report = proxy.report();
    assert_eq!(number(&report, "there.packets_in"), 80.0);
    assert_eq!(number(&report, "there.dropped.overflow"), 60.0);
    assert_eq!(number(&report, "kernel_drops"), 0.0);
    assert!(number(&report, "busy_cpu_seconds") <= number(&report, "cpu_seconds"));
}

/// Each test has its own addresses because the kernel caches path MTUs by destination.
#[cfg(target_os = "linux")]
mod icmp {
    use courser_base::Ecn;
    use courser_udp::{PacketTooBig, TooBigSender, Transmit};

    use super::*;

    /// Returns true, and reports the test as skipped, if this process must not send ICMP.
    fn lacks_raw_sockets() -> bool {
        let refused = TooBigSender::open(true, false).err();
        if let Some(error) = &refused {
            skipped(&format!("no raw sockets: {error}"));
        }
        refused.is_some()
    }

    fn udp(address: &str) -> courser_udp::UdpSocket {
        courser_udp::UdpSocket::bind(address.parse().expect("an address")).expect("a port")
    }

    fn send(socket: &courser_udp::UdpSocket, destination: SocketAddr, contents: &[u8]) {
        let transmit = Transmit {
            destination,
            source: None,
            ecn: Ecn::NotEct,
            segment_size: None,
            contents,
        };
        socket.try_send(&transmit).expect("sent");
    }

    /// Returns the datagram or the error that a socket receives within a second.
    fn next(
        socket: &courser_udp::UdpSocket,
    ) -> (Option<(usize, SocketAddr)>, Option<PacketTooBig>) {
        for _ in 0..500 {
            if let Ok(received) = socket.try_receive(&mut [0; 2048]) {
                return (Some((received.len, received.peer)), None);
            }
            if let Some(message) = socket.take_packet_too_big() {
                return (None, Some(message));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        (None, None)
    }

    #[test]
    fn both_ends_receive_packet_too_big() {
        if lacks_raw_sockets() {
            return;
        }
        let (client, server) = (udp("127.78.0.1:0"), udp("127.78.0.3:0"));
        let to = server.local_addr().expect("bound");
        // The proxy uses 127.0.0.1 towards the server until it rebinds, then 127.0.0.192.
        let more = ["--link-back", "mtu=1300/icmp", "--seed", "190"];
        let link = "mtu=1400/icmp,rebind=addr:1s:never";
        let proxy = Proxy::start_at("127.78.0.2:0", to, link, &more);
        send(&client, proxy.address, b"first");
        assert_eq!(next(&server).0.expect("it fits").0, 5);
        std::thread::sleep(Duration::from_millis(1_500));
        let contents: Vec<u8> = (0..1373_u32).map(|at| at.to_le_bytes()[0]).collect();
        send(&client, proxy.address, &contents);
        let message = next(&client).1.expect("a message");
        assert_eq!((message.destination, message.mtu), (proxy.address, 1400));
        assert_eq!(message.quote(), &contents[..message.quote().len()]);
        assert!(message.quote().len() > 40);
        send(&client, proxy.address, &contents[1..]);
        let (len, upstream) = next(&server).0.expect("it fits");
        assert_eq!(len, 1372);
        assert_ne!(upstream.ip(), std::net::IpAddr::V4(Ipv4Addr::LOCALHOST));

        send(&server, upstream, &contents);
        let message = next(&server).1.expect("a message");
        assert_eq!((message.destination, message.mtu), (upstream, 1300));
        send(&server, upstream, &contents[..1272]);
        assert_eq!(next(&client).0.expect("it fits").0, 1272);

        let report = proxy.report();
        assert_eq!(number(&report, "there.answered"), 1.0);
        assert_eq!(number(&report, "back.answered"), 1.0);
        assert_eq!(number(&report, "there.dropped.mtu"), 1.0);
        assert_eq!(number(&report, "icmp_failures"), 0.0);
    }

    /// Loopback has an MTU of 64 KiB, the link one of 1400 bytes.
    #[test]
    fn connection_uses_the_mtu_in_the_message() {
        if lacks_raw_sockets() {
            return;
        }
        let server = Server::start(&[]);
        // Unused addresses: the kernel would remember the path MTU for those of the interface.
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let run = |network: u8, link: &str| {
            let listen = format!("127.{network}.{high}.{low}:0");
            let proxy = Proxy::start_at(&listen, server.address, link, &[]);
            let client = proxy.perf(&["-n", "3M"]);
            let report = proxy.report();
            assert_eq!(number(&client, "end.sent_bytes"), 3e6, "{link}");
            let mtu = client["client"]["connection"]["mtu"].as_u64();
            (mtu, number(&report, "there.dropped.mtu"))
        };
        let (mtu, with_icmp) = run(80, "20ms,mtu=1400/icmp;20ms");
        assert_eq!(mtu, Some(1372));
        let (_, without_icmp) = run(81, "20ms,mtu=1400;20ms");
        // One probe of 64 KiB. Without ICMP, each size would be tried three times.
        assert!((1.0..=2.0).contains(&with_icmp), "{with_icmp}");
        assert!(without_icmp >= 3.0, "{without_icmp}");
    }

    /// Root without the capability must not send ICMP: the message names the capability.
    #[test]
    fn missing_capability_is_reported_at_the_start() {
        let arguments = [
            "sim",
            "proxy",
            "--listen",
            "127.0.0.1:0",
            "--to",
            "127.0.0.1:9",
        ];
        let binary = env!("CARGO_BIN_EXE_courser");
        let mut command = if lacks_raw_sockets() {
            std::process::Command::new(binary)
        } else {
            let mut command = std::process::Command::new("setpriv");
            command.args(["--bounding-set=-net_raw", "--inh-caps=-net_raw", binary]);
            command
        };
        command
            .args(arguments)
            .args(["--link", "20ms | mtu=1400/icmp"]);
        let Ok(output) = command.output() else {
            skipped("setpriv is not installed");
            return;
        };
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        for expected in [
            "CAP_NET_RAW",
            "setcap",
            "mtu=N without /icmp needs no privileges",
        ] {
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
