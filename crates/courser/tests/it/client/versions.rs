//! Versions of HTTP that single requests choose.

use courser::client::{ErrorKind, HttpVersion, TlsVersions};
use http::Version;

use super::server::{Protocols, Server, echo};
use super::{builder, text, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_chooses_its_version_and_shares_no_connection_with_others() {
    let server = Server::start(Protocols::Both, echo()).await;
    let client = builder(&server)
        .version(HttpVersion::Http2)
        .build()
        .expect("a client");
    // Twice, so that the second round finds the connections of all versions in the pool.
    for _ in 0..2 {
        for (chosen, expected) in [
            (HttpVersion::Http3Only, Version::HTTP_3),
            (HttpVersion::Http1, Version::HTTP_11),
            (HttpVersion::Http2, Version::HTTP_2),
            (Version::HTTP_3.into(), Version::HTTP_3),
            (Version::HTTP_2.into(), Version::HTTP_2),
            (Version::HTTP_11.into(), Version::HTTP_11),
            (Version::HTTP_10.into(), Version::HTTP_10),
        ] {
            let request = client.get(server.url("/")).version(chosen);
            let response = within(request).await.expect("answered");
            let seen = text(response).await;
            assert_eq!(seen, format!("{expected:?} GET /"), "{chosen:?}");
        }
        let response = within(client.get(server.url("/"))).await.expect("answered");
        assert_eq!(response.version(), Version::HTTP_2, "that of the client");
    }
    // One over QUIC, and over TCP one for each list of versions. HTTP/1.0 keeps none.
    let (quic, tcp) = server.connections.counts();
    assert_eq!(quic, 1);
    assert_eq!(tcp, 1 + 1 + 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_uses_http3_sends_single_requests_over_tcp() {
    let server = Server::start(Protocols::Both, echo()).await;
    let client = builder(&server)
        .version(HttpVersion::Http3Only)
        .build()
        .expect("a client");
    for (chosen, expected) in [
        (HttpVersion::Http1, Version::HTTP_11),
        (HttpVersion::Http3Only, Version::HTTP_3),
        (HttpVersion::Http2, Version::HTTP_2),
    ] {
        let request = client.get(server.url("/")).version(chosen);
        let response = within(request).await.expect("answered");
        assert_eq!(response.version(), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn version_that_the_client_cannot_use_is_an_error_with_a_remedy() {
    let server = Server::start(Protocols::Both, echo()).await;
    let client = builder(&server)
        .tls_versions(TlsVersions::Only12)
        .build()
        .expect("a client");
    for (url, text) in [
        (server.url("/"), "needs UDP and TLS 1.3"),
        ("http://localhost/".to_owned(), "use https://"),
    ] {
        let request = client.get(url).version(HttpVersion::Http3Only);
        let error = within(request).await.expect_err("no HTTP/3");
        assert_eq!(error.kind(), ErrorKind::Url);
        assert!(error.to_string().contains(text), "{error}");
    }
    let response = within(client.get(server.url("/"))).await.expect("answered");
    assert_ne!(response.version(), Version::HTTP_3);
}
