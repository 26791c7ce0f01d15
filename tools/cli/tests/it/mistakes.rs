//! Invalid arguments and unusable peers: each run fails with one line that says what to do.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use crate::common::{Folder, Server, certificate, refusal, run};
use courser::{Endpoint, ServerConfig};

const LOCAL: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

#[test]
fn port_in_use() {
    let socket = UdpSocket::bind(LOCAL).expect("a port");
    let address = socket.local_addr().expect("bound").to_string();
    let line = refusal(&["perf", "server", "--listen", &address]);
    assert!(
        line.contains(&format!("cannot listen on udp {address}")),
        "{line}"
    );
    assert!(line.contains("the port is in use"), "{line}");
}

#[test]
fn tcp_port_in_use() {
    let socket = TcpListener::bind(LOCAL).expect("a port");
    let address = socket.local_addr().expect("bound").to_string();
    let line = refusal(&["perf", "server", "--tcp", "--listen", &address]);
    assert!(
        line.contains(&format!("cannot listen on tcp {address}")),
        "{line}"
    );
}

#[test]
fn address_of_another_machine() {
    // TEST-NET-1 has no hosts.
    let line = refusal(&["perf", "server", "--listen", "192.0.2.1:4433"]);
    assert!(
        line.contains("no interface of this machine has this address"),
        "{line}"
    );
}

#[test]
fn unreadable_certificate_and_key() {
    let folder = Folder::new();
    let good = certificate(2200);
    let other = certificate(2200);
    let text = folder.file("text", "no PEM");
    let missing = "/nonexistent/cert.pem";
    let cases = [
        (
            missing,
            good.key.as_str(),
            "cannot read certificate /nonexistent/cert.pem",
        ),
        (
            &good.cert,
            "/nonexistent/key.pem",
            "cannot read private key",
        ),
        (&text, &good.key, "no certificate in"),
        (&good.cert, &text, "no usable private key in"),
        (
            &good.cert,
            &other.key,
            "the key is not that of the certificate",
        ),
    ];
    for (cert, key, expected) in cases {
        let listen = ["perf", "server", "--listen", "127.0.0.1:0"];
        let line = refusal(&[&listen[..], &["--cert", cert, "--key", key]].concat());
        assert!(line.contains(expected), "{expected}: {line}");
    }
}

#[test]
fn certificate_without_key() {
    let line = refusal(&["perf", "server", "--cert", "cert.pem"]);
    assert!(line.contains("--key"), "{line}");
}

#[test]
fn unreadable_roots() {
    let line = refusal(&[
        "perf",
        "client",
        "127.0.0.1:1",
        "--ca",
        "/nonexistent/ca.pem",
    ]);
    assert!(
        line.contains("cannot read certificate /nonexistent/ca.pem"),
        "{line}"
    );
}

#[test]
fn unknown_controller() {
    for role in [&["perf", "server"][..], &["perf", "client", "localhost"]] {
        let line = refusal(&[role, &["--cc", "vegas"]].concat());
        assert!(
            line.contains("unknown controller 'vegas', known are newreno, "),
            "{line}"
        );
    }
}

#[test]
fn unknown_scenario_and_flag() {
    let line = refusal(&["perf", "client", "localhost", "--scenario", "sideways"]);
    assert!(
        line.contains("sideways") && line.contains("upload, download, rr"),
        "{line}"
    );
    let line = refusal(&["perf", "client", "localhost", "--sideways"]);
    assert!(line.contains("--sideways"), "{line}");
}

#[test]
fn unresolvable_host() {
    let line = refusal(&["perf", "client", "nosuch.invalid:4433", "--insecure"]);
    assert!(line.contains("cannot resolve 'nosuch.invalid'"), "{line}");
}

#[test]
fn target_without_a_port_number() {
    let line = refusal(&["perf", "client", "localhost:http", "--insecure"]);
    assert!(line.contains("'localhost:http' is not HOST:PORT"), "{line}");
}

#[test]
fn closed_port() {
    let address = UdpSocket::bind(LOCAL)
        .and_then(|socket| socket.local_addr())
        .expect("a port");
    let line = refusal(&["perf", "client", &address.to_string(), "--insecure"]);
    assert!(
        line.contains(&format!("nothing is listening on udp {address}")),
        "{line}"
    );
}

#[test]
fn server_without_tcp() {
    // This server has no TCP.
    let server = Server::start(&[]);
    let address = server.address.to_string();
    let line = refusal(&["perf", "client", &address, "--insecure", "--tcp"]);
    assert!(
        line.contains("nothing is listening on tcp") && line.contains("needs --tcp"),
        "{line}"
    );
}

#[test]
fn server_that_does_not_respond() {
    let (udp, tcp) = (
        UdpSocket::bind(LOCAL).expect("port"),
        TcpListener::bind(LOCAL).expect("port"),
    );
    let cases = [
        ("udp", udp.local_addr().expect("bound"), &[][..]),
        ("tcp", tcp.local_addr().expect("bound"), &["--tcp"]),
    ];
    for (protocol, address, over) in cases {
        let address = address.to_string();
        let flags = [
            "perf",
            "client",
            &address,
            "--insecure",
            "--connect-timeout",
            "0.4",
        ];
        let line = refusal(&[&flags[..], over].concat());
        let expected = format!("no answer from {protocol} {address} within 0.4 s");
        assert!(line.contains(&expected), "{line}");
    }
}

/// Responds to every long header with a Version Negotiation packet that offers one unknown version.
fn offer_unknown_version(socket: &UdpSocket) {
    let mut packet = [0; 65_536];
    while let Ok((len, peer)) = socket.recv_from(&mut packet) {
        // RFC 8999 §5.1: flags, version, then both connection IDs after their lengths.
        let packet = &packet[..len];
        if len < 7 || packet[0] & 0x80 == 0 {
            continue;
        }
        let destination = &packet[6..6 + usize::from(packet[5])];
        let after = 6 + destination.len();
        let source = &packet[after + 1..after + 1 + usize::from(packet[after])];
        let mut answer = vec![0x80, 0, 0, 0, 0];
        for id in [source, destination] {
            answer.push(u8::try_from(id.len()).expect("a length of one byte"));
            answer.extend_from_slice(id);
        }
        answer.extend_from_slice(&0x00c0_ffee_u32.to_be_bytes());
        socket.send_to(&answer, peer).expect("loopback");
    }
}

#[test]
fn no_common_version() {
    let socket = UdpSocket::bind(LOCAL).expect("a port");
    let address = socket.local_addr().expect("bound").to_string();
    std::thread::spawn(move || offer_unknown_version(&socket));
    let line = refusal(&["perf", "client", &address, "--insecure"]);
    assert!(
        line.contains("no common QUIC version") && line.contains("0x00c0ffee"),
        "{line}"
    );
}

/// A server of another protocol.
fn other_protocol() -> SocketAddr {
    let (sender, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async move {
            let config = ServerConfig::dev().expect("random numbers").alpn(["h3"]);
            let endpoint = Endpoint::server(config, LOCAL.into()).expect("a port");
            sender
                .send(endpoint.local_addr().expect("bound"))
                .expect("a receiver");
            while let Some(incoming) = endpoint.accept().await {
                assert!(incoming.await.is_err(), "nothing in common");
            }
        });
    });
    address.recv().expect("an address")
}

#[test]
fn no_common_protocol() {
    let address = other_protocol().to_string();
    let line = refusal(&["perf", "client", &address, "--insecure"]);
    assert!(
        line.contains("does not support the protocol 'perf' (ALPN)"),
        "{line}"
    );
}

#[test]
fn untrusted_certificates() {
    let expired = certificate(2001);
    let good = certificate(2200);
    let other = certificate(2200);
    let cases = [
        (&expired, &expired, "localhost", "has expired"),
        (
            &good,
            &other,
            "localhost",
            "is not trusted: pass --ca FILE or --insecure",
        ),
        (
            &good,
            &good,
            "example.org",
            "the certificate is not for example.org",
        ),
    ];
    for (shown, trusted, name, expected) in cases {
        let server = Server::start(&["--tcp", "--cert", &shown.cert, "--key", &shown.key]);
        let address = server.address.to_string();
        for over in [&[][..], &["--tcp"]] {
            let client = [
                "perf",
                "client",
                &address,
                "--ca",
                &trusted.cert,
                "--server-name",
                name,
            ];
            let line = refusal(&[&client[..], over].concat());
            assert!(line.contains(expected), "{over:?} {expected}: {line}");
        }
    }
}

#[test]
fn bad_sizes_and_times() {
    let cases = [
        (["-n", "12x"], "'12x' is not a size"),
        (["-n", "0"], "at least 1"),
        (["-n", "-5"], "-5"),
        (["-n", "99999999T"], "below 2^63"),
        (["--mtu", "100"], "100 is not between 1200 and 65507"),
        (["-t", "0"], "'0' is not a time"),
        (["-P", "0"], "0 is not between 1 and"),
        (["-P", "1M"], "1000000 is not between 1 and"),
    ];
    for (flags, expected) in cases {
        let line = refusal(&[&["perf", "client", "localhost"][..], &flags].concat());
        assert!(line.contains(expected), "{flags:?}: {line}");
    }
}

#[test]
fn conflicting_flags() {
    for flags in [
        &["-n", "1M", "-t", "1"][..],
        &["-R", "--bidir"],
        &["--scenario", "close", "-P", "2"],
        &["--scenario", "rr", "--uni", "--tcp"],
        &["--resume"],
        &["--ca", "x", "--insecure"],
    ] {
        refusal(&[&["perf", "client", "localhost"], flags].concat());
    }
}

#[test]
fn unknown_core() {
    let line = refusal(&[
        "perf",
        "client",
        "127.0.0.1:1",
        "--insecure",
        "--core",
        "99999",
    ]);
    assert!(line.contains("core"), "{line}");
}

#[test]
fn help_and_version_succeed() {
    for flags in [
        &["--help"][..],
        &["--version"],
        &["perf", "client", "--help"],
    ] {
        let output = run(flags);
        assert!(output.status.success(), "{flags:?}");
        assert!(
            !output.stdout.is_empty() && output.stderr.is_empty(),
            "{flags:?}"
        );
    }
}
