//! Requests of the client in early data. RFC 8470.

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use bytes::Bytes;
use courser::client::{HttpVersion, Proxy};
use courser::server::{EarlyData, ServerHandle, TooEarly};
use courser::{Client, EarlyDataOptions, Identity, serve};
use http::{Method, StatusCode};
use http_body_util::Full;

use super::{text, timing, within};
use crate::common::until;

/// A server that answers with the fact whether the request came in early data, and its client.
struct Pair {
    client: Client,
    server: ServerHandle,
    url: String,
}

impl Pair {
    async fn new(policy: TooEarly) -> Self {
        let answer = |request: Request| async move {
            match request.extensions().get::<EarlyData>() {
                Some(EarlyData) => "early",
                None => "late",
            }
        };
        let identity = Identity::dev().expect("random numbers");
        let server = serve("127.0.0.1:0", &identity)
            .early_data(EarlyDataOptions::default())
            .early_requests(policy);
        let bound = server.bind().expect("a free port");
        let server = bound.handle();
        let address = server.local_addr();
        let serving = bound
            .service(Router::new().fallback(any(answer)))
            .into_future();
        crate::common::spawn(async move { serving.await.map(drop) });
        let client = Client::builder()
            .platform_roots(false)
            .root(identity.certificate())
            .proxy(Proxy::Direct)
            .resolve("localhost", 0, [address.ip()])
            .version(HttpVersion::Http3Only)
            .early_data(true)
            // Each request of these tests opens another connection.
            .idle_timeout(Duration::from_millis(40))
            .build()
            .expect("a client");
        let url = format!("https://localhost:{}/", address.port());
        let pair = Self {
            client,
            server,
            url,
        };
        assert_eq!(
            pair.ask(Method::GET).await,
            (StatusCode::OK, "late".to_owned(), 0)
        );
        pair
    }

    /// Sends a request on a connection of its own. Returns the status, the body, and the number of
    /// repetitions.
    async fn ask(&self, method: Method) -> (StatusCode, String, u32) {
        let request = http::Request::builder()
            .method(method)
            .uri(&self.url)
            .body(Full::<Bytes>::default())
            .expect("a valid request");
        let response = within(self.client.send(request)).await.expect("answered");
        let (status, retries) = (response.status(), timing(&response).retries);
        let body = text(response).await;
        until(|| self.server.stats().http3.connections_open == 0).await;
        (status, body, retries)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn safe_requests_leave_early_and_others_wait() {
    let pair = Pair::new(TooEarly::unless_safe()).await;
    // On a machine under load the handshake may be complete before a request arrives.
    assert_eq!(pair.ask(Method::GET).await.0, StatusCode::OK);
    let late = (StatusCode::OK, "late".to_owned(), 0);
    assert_eq!(pair.ask(Method::POST).await, late);
    assert_eq!(pair.ask(Method::GET).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_too_early_is_sent_again() {
    let pair = Pair::new(TooEarly::always()).await;
    let (status, text, retries) = pair.ask(Method::GET).await;
    assert_eq!((status, &*text), (StatusCode::OK, "late"));
    // None if the handshake was complete before the request arrived.
    assert!(retries <= 1, "{retries} repetitions");
}
