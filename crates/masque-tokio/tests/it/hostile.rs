//! Peers that break the rules of datagrams.

use bytes::Bytes;
use courser_masque_tokio::{Ended, Malformed};
use courser_quic::TransportConfig;

use super::*;

/// Opens a tunnel on a bare client of HTTP/3.
async fn bare(started: &Started, target: SocketAddr) -> (UdpClient, h3::Upgraded) {
    let link = started.client(Carrier::Http3).await;
    let request = connect_request(target);
    let response = within(link.http3().expect("HTTP/3").connect(request)).await;
    (link, response.expect("accepted").into_body())
}

/// MQ-udp-019, attack A354.
#[tokio::test(flavor = "multi_thread")]
async fn a_datagram_without_a_context_resets_the_stream() {
    let started = start(open_proxy()).await;
    let target = echo().await;
    for is_capsule in [false, true] {
        let (_link, mut stream) = bare(&started, target).await;
        match is_capsule {
            true => stream
                .write_chunk(Bytes::from_static(&[0, 0]))
                .await
                .expect("open"),
            false => stream
                .datagrams()
                .expect("datagrams")
                .send(b"")
                .expect("open"),
        }
        let error = within(stream.read_chunk()).await.expect_err("reset");
        assert_eq!(error.code(), Some(h3::Code::DATAGRAM_ERROR), "{is_capsule}");
    }
}

/// MQ-udp-018, attack A354: a capsule with a payload of 65 528 bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_no_packet_carries_resets_the_stream() {
    let started = start(open_proxy()).await;
    let (_link, mut stream) = bare(&started, echo().await).await;
    let mut capsule = vec![0, 0x80, 0x00, 0xff, 0xf9, 0];
    capsule.extend(vec![7; 65_528]);
    stream.write_chunk(capsule.into()).await.expect("open");
    let error = within(stream.read_chunk()).await.expect_err("reset");
    assert_eq!(error.code(), Some(h3::Code::DATAGRAM_ERROR));
}

/// MQ-udp-017, attack A354.
#[tokio::test(flavor = "multi_thread")]
async fn unknown_contexts_are_dropped() {
    let proxy = open_proxy();
    let started = start(proxy.clone()).await;
    let (_link, stream) = bare(&started, echo().await).await;
    let datagrams = stream.datagrams().cloned().expect("datagrams");
    for context in 1..64 {
        datagrams.send(&[context, 1, 2, 3]).expect("open");
        tokio::task::yield_now().await;
    }
    datagrams.send(&[0, 42]).expect("open");
    assert_eq!(
        within(datagrams.receive()).await.expect("open"),
        Bytes::from_static(&[0, 42])
    );
    assert_eq!(proxy.stats().to_targets, 1);
}

/// Capsules of unknown types are skipped (RFC 9297 §3.2), and a proxy accepts datagrams in capsules beside frames.
#[tokio::test(flavor = "multi_thread")]
async fn datagrams_in_capsules_are_accepted_over_http3() {
    let started = start(open_proxy()).await;
    let (_link, mut stream) = bare(&started, echo().await).await;
    let capsules = [&[0x17_u8, 3, 1, 2, 3][..], &[0, 2, 0, 9]].concat();
    stream.write_chunk(capsules.into()).await.expect("open");
    let answer = within(stream.datagrams().expect("datagrams").receive()).await;
    assert_eq!(answer.expect("open"), Bytes::from_static(&[0, 9]));
}

/// A proxy that sends a malformed datagram ends the tunnel of a client.
#[tokio::test(flavor = "multi_thread")]
async fn clients_reset_the_tunnels_of_proxies_that_break_rules() {
    let identity = Identity::dev().expect("an identity");
    let mut settings = h3::Config::new(Side::Server);
    courser_masque_tokio::enable(&mut settings, Side::Server);
    let server = courser_server::serve("127.0.0.1:0", identity.clone())
        .config(settings)
        .bind();
    let server = server.expect("a free port");
    let address = server.local_addr();
    let service = tower::service_fn(
        |mut request: http::Request<courser_server::Body>| async move {
            let upgrade = h3::upgrade(&mut request).expect("a CONNECT");
            tokio::spawn(async move {
                let stream = upgrade.await.expect("accepted");
                let datagrams = stream.datagrams().cloned().expect("datagrams");
                datagrams.negotiated().await;
                datagrams.send(b"").expect("open");
                datagrams.receive().await
            });
            Ok::<_, std::convert::Infallible>(http::Response::new(h3::Empty))
        },
    );
    tokio::spawn(server.service(service).into_future());
    let started = Started { address, identity };
    let socket = started.open(Carrier::Http3, "192.0.2.1:443").await;
    let end = within(socket.recv()).await.expect_err("malformed");
    assert_eq!(end, Ended::Malformed(Malformed::NoContext));
}

/// Limit K626, attack A355: a client that reads no capsules.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_fills_no_memory() {
    let proxy = open_proxy();
    let started = start(proxy.clone()).await;
    let target = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
    let address = target.local_addr().expect("bound");
    let client = client_without_frames(&started, TransportConfig::default()).await;
    let response = within(client.connect(connect_request(address))).await;
    let mut stream = response.expect("accepted").into_body();
    stream
        .write_chunk(capsule_of(b"begin"))
        .await
        .expect("open");
    let mut buffer = [0; 100];
    let (_, from) = within(target.recv_from(&mut buffer))
        .await
        .expect("received");
    // The credit of the stream is used up, and then the queue of the proxy fills up.
    for number in 0..60_000_u32 {
        target.send_to(&[7; 1000], from).await.expect("sent");
        if number % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let passed = proxy.stats().from_targets;
    assert!(passed < 40_000, "{passed} of 60 000 packets went on");
    // The tunnel works on: what waits arrives, and after it what is new.
    let mut received = 0;
    loop {
        let chunk = within(stream.read_chunk()).await.expect("open");
        let chunk = chunk.expect("no end");
        received += chunk.len();
        if chunk.ends_with(b"\0end") {
            break;
        }
        target.send_to(b"end", from).await.expect("sent");
    }
    assert!(received > 1_000_000, "{received}");
}

/// A malformed capsule over HTTP/2 resets the stream: an end would be that of a tunnel in which all is well (RFC 9297 §3.3).
#[cfg(feature = "server")]
#[tokio::test(flavor = "multi_thread")]
async fn malformed_capsules_reset_streams_of_http2() {
    let proxy = open_proxy();
    let started = start(proxy.clone()).await;
    let target = echo().await;
    let mut client = http2_client(&started).await;
    // A datagram without a context; a capsule of the type of datagrams that is too long; the end inside of a capsule.
    for (bytes, is_end) in [
        (&[0, 0][..], false),
        (&[0, 0xbf, 0xff, 0xff, 0xff], false),
        (&[0, 5, 0, 1], true),
    ] {
        let request = http::Request::connect(format!(
            "https://localhost/.well-known/masque/udp/{}/{}/",
            target.ip(),
            target.port()
        ))
        .header("capsule-protocol", "?1")
        .extension(h2::ext::Protocol::from_static("connect-udp"))
        .body(())
        .expect("a request");
        let (response, mut sending) = client.send_request(request, false).expect("sent");
        let mut response = within(response).await.expect("a response");
        assert_eq!(response.status(), 200);
        sending
            .send_data(bytes::Bytes::from_static(bytes), is_end)
            .expect("sent");
        let end = within(response.body_mut().data()).await;
        let error = end.expect("no end of the stream").expect_err("a reset");
        assert!(error.reason().is_some(), "{error}");
        until(|| proxy.stats().open == 0).await;
    }
}

/// Returns a client of HTTP/2 that sees frames.
#[cfg(feature = "server")]
async fn http2_client(started: &Started) -> h2::client::SendRequest<bytes::Bytes> {
    use courser_tls::rustls::{ClientConfig, RootCertStore, pki_types::ServerName};

    let mut roots = RootCertStore::empty();
    roots.add(started.identity.certificate()).expect("valid");
    let mut config = ClientConfig::builder_with_provider(courser_tls::crypto_provider())
        .with_safe_default_protocol_versions()
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = tokio::net::TcpStream::connect(started.address).await;
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = connector.connect(name, stream.expect("connected"));
    let stream = within(stream).await.expect("a handshake");
    let (client, connection) = within(h2::client::handshake(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    until(|| client.is_extended_connect_protocol_enabled()).await;
    client
}
