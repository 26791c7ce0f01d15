//! Requests that a policy repeats.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use courser::client::{HttpVersion, RetryPolicy};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};

use super::server::{Protocols, Server, full, service};
use super::{builder, client, text, timing, within};

/// Starts a server that answers the first requests with this status and `retry-after`, and later ones with their
/// content. Returns the number of requests.
async fn failing(
    protocols: Protocols,
    failures: usize,
    status: StatusCode,
    retry_after: Option<&'static str>,
) -> (Server, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let answer = service(move |request| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let content = request.into_body().collect().await.expect("a body");
            let mut response = Response::new(full(content.to_bytes()));
            if number < failures {
                *response.status_mut() = status;
                if let Some(value) = retry_after {
                    let value = value.parse().expect("a value");
                    response.headers_mut().insert("retry-after", value);
                }
            }
            response
        }
    });
    (Server::start(protocols, answer).await, count)
}

fn policy() -> RetryPolicy {
    RetryPolicy::new().delays(Duration::from_millis(1), Duration::from_millis(4))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_repeated_with_their_content_over_all_versions() {
    for version in [
        HttpVersion::Http3Only,
        HttpVersion::Http2,
        HttpVersion::Http1,
    ] {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let (server, count) = failing(Protocols::Both, 2, status, None).await;
        let client = builder(&server).version(version).retry(policy());
        let client = client.build().expect("a client");
        let request = Request::put(server.url("/")).body(Full::<bytes::Bytes>::from("content"));
        let response = within(client.send(request.expect("a request"))).await;
        let response = response.expect("answered");
        assert_eq!(response.status(), StatusCode::OK, "{version:?}");
        assert_eq!(timing(&response).repeats, 2);
        assert_eq!(text(response).await, "content");
        assert_eq!(count.load(Ordering::SeqCst), 3);
        let connections = server.connections.counts();
        assert_eq!(
            connections.0 + connections.1,
            1,
            "{version:?}: the same connection"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_not_repeated_without_a_policy_or_reason() {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let (server, count) = failing(Protocols::Tcp, usize::MAX, status, None).await;
    let get = Request::get(server.url("/")).body(Full::<bytes::Bytes>::default());
    let response = within(client(&server).send(get.expect("a request"))).await;
    assert_eq!(response.expect("answered").status(), status);
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let client = builder(&server).retry(policy()).build().expect("a client");
    // The method is not idempotent.
    let post = Request::post(server.url("/")).body(Full::<bytes::Bytes>::from("x"));
    let response = within(client.send(post.expect("a request"))).await;
    assert_eq!(response.expect("answered").status(), status);
    assert_eq!(count.load(Ordering::SeqCst), 2);
    // The request has a policy of its own.
    let get = Request::get(server.url("/")).extension(policy().retries(1));
    let get = get.body(Full::<bytes::Bytes>::default());
    let response = within(client.send(get.expect("a request"))).await;
    let response = response.expect("answered");
    assert_eq!((response.status(), timing(&response).repeats), (status, 1));
    assert_eq!(count.load(Ordering::SeqCst), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retry_after_delays_the_request() {
    let status = StatusCode::TOO_MANY_REQUESTS;
    let (server, count) = failing(Protocols::Tcp, 1, status, Some("1")).await;
    let client = builder(&server).retry(policy()).build().expect("a client");
    let began = Instant::now();
    let response = within(client.get(server.url("/"))).await.expect("answered");
    assert_eq!(response.status(), StatusCode::OK);
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!(count.load(Ordering::SeqCst), 2);
    // The caller decides about longer ones, and about those that end after its timeout.
    for (limit, timeout) in [(0, 30), (30, 1)] {
        let (server, count) = failing(Protocols::Tcp, 1, status, Some("1")).await;
        let policy = policy().longest_retry_after(Duration::from_secs(limit));
        let client = builder(&server).retry(policy);
        let client = client.timeout(Duration::from_secs(timeout)).build();
        let client = client.expect("a client");
        let response = within(client.get(server.url("/"))).await.expect("answered");
        assert_eq!(response.status(), status);
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_connections_are_repeated_until_the_server_is_back() {
    let (server, _) = failing(Protocols::Tcp, 0, StatusCode::OK, None).await;
    let policy = RetryPolicy::new()
        .retries(9)
        .delays(Duration::from_millis(50), Duration::from_millis(200));
    let client = builder(&server).retry(policy).build().expect("a client");
    server.stop().await;
    let url = server.url("/");
    let request = crate::common::spawn(async move { client.get(&url).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.listen(Protocols::Tcp).await;
    let response = within(request).await.expect("no panic").expect("answered");
    assert!(timing(&response).repeats >= 1);
}

/// Fault F151.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_server_receives_at_most_a_fifth_more_requests() {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let (server, count) = failing(Protocols::Tcp, usize::MAX, status, None).await;
    let client = builder(&server).retry(policy()).build().expect("a client");
    for _ in 0..200 {
        let response = within(client.get(server.url("/"))).await;
        assert_eq!(response.expect("answered").status(), status);
    }
    let count = count.load(Ordering::SeqCst);
    assert!((240..=250).contains(&count), "{count}");
}
