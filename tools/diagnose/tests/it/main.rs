//! Tests the probe against servers in this process, over loopback.

use courser::{Endpoint, Incoming, RetryPolicy, ServerConfig};
use courser_diagnose::probe::{AnnouncedOutcome, Arguments, Facts, MAX_HANDSHAKES, run};
use courser_measure::tls::{self, Identity};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Answers each request of a client with a few bytes.
async fn answer(incoming: Incoming) -> Option<()> {
    let connection = incoming.await.ok()?;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        receive.read_to_end(1000).await.ok()?;
        send.write_all(b"hello").await.ok()?;
        send.finish().ok()?;
    }
    Some(())
}

/// Starts a server of HTTP/0.9. Returns its address.
fn start(config: ServerConfig) -> std::net::SocketAddr {
    let config = config.alpn(["hq-interop"]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse().expect("an address"));
    let server = server.expect("a server");
    let address = server.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(answer(incoming));
        }
    });
    address
}

fn arguments(address: std::net::SocketAddr) -> Arguments {
    Arguments {
        host: address.to_string(),
        path: "/".to_owned(),
        alpn: vec!["h3".to_owned(), "hq-interop".to_owned()],
        server_name: Some("localhost".to_owned()),
        ca: None,
        timeout: std::time::Duration::from_secs(5),
        no_tcp: true,
        json: false,
        html: None,
    }
}

/// Starts a server of HTTP/0.9, and examines it.
async fn examine(config: ServerConfig) -> Facts {
    let arguments = arguments(start(config));
    let mut steps = 0;
    let report = run(&arguments, |_| steps += 1).await.expect("an address");
    assert!(
        report.facts.handshakes <= MAX_HANDSHAKES && steps >= 5,
        "{report}"
    );
    report.facts
}

fn server() -> ServerConfig {
    ServerConfig::dev().expect("a certificate")
}

#[tokio::test]
async fn server_of_another_protocol_is_examined() {
    let facts = examine(server()).await;
    let first = facts.first.expect("a handshake");
    assert_eq!(
        (first.protocol.as_str(), first.retry),
        ("hq-interop", false)
    );
    let rebinding = first.rebinding.expect("tried");
    assert!(rebinding.survived && rebinding.validated);
    let resumed = facts.resumed.expect("tried").expect("resumed");
    assert!(
        resumed.resumed && resumed.key_update == Some(true),
        "{resumed:?}"
    );
    assert!(
        resumed.migration.is_some_and(|it| it.survived),
        "{resumed:?}"
    );
    assert_eq!(
        facts.unknown_alpn,
        Some(courser_diagnose::probe::Refusal::Code(0x178))
    );
}

#[tokio::test]
async fn retry_is_reported() {
    let facts = examine(server().retry(RetryPolicy::Always)).await;
    let first = facts.first.expect("a handshake");
    assert!(first.retry && !first.exceeds_three_times);
}

#[tokio::test]
async fn migration_is_not_tried_if_the_server_forbids_it() {
    let facts = examine(server().migration(false)).await;
    let first = facts.first.expect("a handshake");
    assert!(first.parameters.expect("known").disable_active_migration);
    assert!(
        first.rebinding.expect("tried").survived,
        "NATs rebind nevertheless"
    );
    assert_eq!(
        facts.resumed.expect("tried").expect("resumed").migration,
        None
    );
}

#[tokio::test]
async fn versions_of_a_server_are_listed() {
    let facts =
        examine(server().versions([courser::QuicVersion::V2, courser::QuicVersion::V1])).await;
    let versions = facts.versions.expect("an answer");
    assert!(
        versions.contains(&1) && versions.contains(&0x6b33_43cf),
        "{versions:?}"
    );
    assert_eq!(facts.version2, Some(Ok(0x6b33_43cf)));
}

/// Starts an HTTP/1.1 server over TLS, whose responses announce this port for HTTP/3. Returns its address.
async fn announcing(port: u16) -> std::net::SocketAddr {
    let identity = Identity::in_memory().expect("random numbers");
    let acceptor = TlsAcceptor::from(tls::server(identity, b"http/1.1").expect("its own key"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => request.push(byte),
                    Err(_) => break,
                }
            }
            let response = format!("HTTP/1.1 200 OK\r\nalt-svc: h3=\":{port}\"; ma=60\r\n\r\n");
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn announced_port_is_examined_if_the_port_itself_does_not_answer() {
    let quic = start(server());
    let tcp = announcing(quic.port()).await;
    let arguments = Arguments {
        no_tcp: false,
        ..arguments(tcp)
    };
    let report = run(&arguments, |_| {}).await.expect("an address");
    let facts = report.facts;
    let announced = facts.announced.expect("announced");
    assert_eq!(announced.place, format!(":{}", quic.port()));
    assert_eq!(announced.outcome, AnnouncedOutcome::Examined);
    assert_eq!(facts.address, quic);
    assert_eq!(facts.first.expect("a handshake").protocol, "hq-interop");
    assert!(facts.handshakes <= MAX_HANDSHAKES);
}

#[tokio::test]
async fn announced_port_that_does_not_answer_is_reported() {
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = closed.local_addr().expect("bound").port();
    drop(closed);
    let tcp = announcing(port).await;
    let arguments = Arguments {
        no_tcp: false,
        ..arguments(tcp)
    };
    let report = run(&arguments, |_| {}).await.expect("an address");
    let error = report.facts.first.expect_err("no handshake");
    assert!(
        error.contains(&format!("announces :{port} for HTTP/3")),
        "{error}"
    );
    let outcome = report.facts.announced.expect("announced").outcome;
    assert!(
        matches!(outcome, AnnouncedOutcome::Failed(_)),
        "{outcome:?}"
    );
}
