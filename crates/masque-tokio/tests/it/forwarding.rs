//! Clients that offer QUIC-aware forwarding (draft-ietf-masque-quic-proxy), which proxies decline.

use bytes::Bytes;

use super::*;

/// MQ-qp-002: the response does not agree to it, capsules of connection IDs are skipped, and packets pass in datagrams.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_offer_forwarding_get_a_tunnel() {
    let proxy = open_proxy();
    let started = start(proxy.clone()).await;
    let target = echo().await;
    let link = started.client(Carrier::Http3).await;
    let uri = format!(
        "https://localhost/.well-known/masque/udp/127.0.0.1/{}/",
        target.port()
    );
    let request = http::Request::connect(uri)
        .extension(h3::Protocol::new("connect-udp").expect("a token"))
        .header("capsule-protocol", "?1")
        .header(
            "proxy-quic-forwarding",
            "?1; accept-transform=\"scramble-dt,identity\"",
        )
        .body(())
        .expect("a URI");
    let response = within(link.http3().expect("HTTP/3").connect(request)).await;
    let response = response.expect("accepted");
    assert!(!response.headers().contains_key("proxy-quic-forwarding"));

    let mut stream = response.into_body();
    // All types of the draft, 0xffe600 to 0xffe607, with a connection ID of four bytes each.
    for last in 0..8 {
        let capsule = [0x80, 0xff, 0xe6, last, 6, 0, 4, 1, 2, 3, 4];
        let capsule = Bytes::copy_from_slice(&capsule);
        stream.write_chunk(capsule).await.expect("open");
    }
    let in_capsule = Bytes::from_static(&[0, 3, 0, 7, 8]);
    stream.write_chunk(in_capsule).await.expect("open");
    let datagrams = stream.datagrams().cloned().expect("datagrams");
    let echoed = within(datagrams.receive()).await.expect("open");
    assert_eq!(echoed, Bytes::from_static(&[0, 7, 8]));
    assert_eq!(proxy.stats().to_targets, 1);
}
