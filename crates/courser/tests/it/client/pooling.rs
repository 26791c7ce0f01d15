//! Reuse, sharing and replacement of connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use courser::client::{ErrorKind, HttpVersion};
use http::{Request, Response};
use http_body_util::Full;

use super::server::{Protocols, Server, echo, full, service};
use super::{builder, client, text, timing, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_at_once_share_one_connection() {
    for (version, expected) in [
        (HttpVersion::Http3Only, (1, 0)),
        (HttpVersion::Http2, (0, 1)),
    ] {
        let server = Server::start(Protocols::Both, echo()).await;
        let client = builder(&server).version(version).build().expect("a client");
        let requests = (0..50).map(|_| {
            let (client, url) = (client.clone(), server.url("/"));
            crate::common::spawn(
                async move { text(client.get(&url).await.expect("answered")).await },
            )
        });
        for request in requests.collect::<Vec<_>>() {
            within(request).await.expect("no panic");
        }
        assert_eq!(server.connections.counts(), expected, "{version:?}");
    }
}

/// RFC 9114 §3.3: a connection to the same address does not help a name that its certificate lacks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn origins_outside_the_certificate_do_not_share_a_connection() {
    for version in [HttpVersion::Http3Only, HttpVersion::Http2] {
        let server = Server::start(Protocols::Both, echo()).await;
        let client = builder(&server)
            .resolve("other.test", 0, [server.address.ip()])
            .version(version)
            .build()
            .expect("a client");
        let port = server.address.port();
        for name in ["localhost", "example.test"] {
            let url = format!("https://{name}:{port}/");
            let response = within(client.get(&url)).await.expect("answered");
            assert_eq!(response.status(), 200, "{version:?} {name}");
        }
        let url = format!("https://other.test:{port}/");
        let error = within(client.get(&url)).await.expect_err("another name");
        assert_eq!(error.kind(), ErrorKind::Certificate, "{version:?}: {error}");
        let response = within(client.get(server.url("/"))).await;
        assert_eq!(response.expect("answered").status(), 200, "{version:?}");
    }
}

/// Lets the tasks of this thread return an HTTP/1.1 connection to the pool, which they do as soon as
/// the response was read.
async fn kept() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn http1_connections_are_reused_for_one_request_at_a_time() {
    let server = Server::start(Protocols::Http1, echo()).await;
    let client = client(&server);
    for number in 0..5 {
        let response = within(client.get(server.url("/"))).await.expect("answered");
        assert_eq!(timing(&response).is_reused, number > 0);
        assert_eq!(text(response).await, "HTTP/1.1 GET /");
        kept().await;
    }
    assert_eq!(server.connections.counts(), (0, 1));
    let url = server.url("/");
    let (one, two) = within(async { tokio::join!(client.get(&url), client.get(&url)) }).await;
    drop((
        text(one.expect("answered")).await,
        text(two.expect("answered")).await,
    ));
    assert_eq!(server.connections.counts(), (0, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_survive_a_restart_of_the_server() {
    for (version, protocols) in [
        (HttpVersion::Http3Only, Protocols::Both),
        (HttpVersion::Http2, Protocols::Both),
        (HttpVersion::Http1, Protocols::Http1),
    ] {
        let server = Server::start(protocols, echo()).await;
        let client = builder(&server).version(version).build().expect("a client");
        for _ in 0..3 {
            let response = within(client.get(server.url("/"))).await;
            let response = response.unwrap_or_else(|error| panic!("{version:?}: {error}"));
            text(response).await;
            within(server.restart(protocols)).await;
        }
    }
}

#[tokio::test]
async fn requests_that_may_have_been_processed_are_not_repeated() {
    let seen = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = seen.clone();
    let server = Server::start(
        Protocols::Http1,
        service(move |request| {
            let counter = counter.clone();
            async move {
                if request.method() == http::Method::POST {
                    counter.fetch_add(1, Ordering::SeqCst);
                    std::future::pending::<()>().await;
                }
                Response::new(full("done"))
            }
        }),
    )
    .await;
    let client = client(&server);
    text(within(client.get(server.url("/"))).await.expect("answered")).await;
    kept().await;
    let request = Request::post(server.url("/"))
        .body(Full::<bytes::Bytes>::from("x"))
        .expect("a request");
    let sending = crate::common::spawn({
        let client = client.clone();
        async move { client.send(request).await }
    });
    super::until(|| seen.load(Ordering::SeqCst) == 1).await;
    server.restart(Protocols::Http1).await;
    let error = within(sending)
        .await
        .expect("no panic")
        .expect_err("broken");
    assert!(!error.is_unprocessed(), "{error}");
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_resumed() {
    for (version, protocols) in [
        (HttpVersion::Http3Only, Protocols::Both),
        (HttpVersion::Http2, Protocols::Both),
    ] {
        let server = Server::start(protocols, echo()).await;
        let client = builder(&server)
            .version(version)
            .idle_timeout(Duration::from_millis(40))
            .build()
            .expect("a client");
        for number in 0..2 {
            let response = within(client.get(server.url("/"))).await.expect("answered");
            assert_eq!(timing(&response).is_resumed, number > 0, "{version:?}");
            assert!(!timing(&response).is_reused, "{version:?}");
            text(response).await;
            server.connections.closed().await;
        }
    }
}
