//! HTTP/3 requests in early data. RFC 8470, RFC 9114 §7.2.4.2 and §10.9.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::routing::{get, post};
use courser::h3::{self, Settings};
use courser::server::{EarlyData, TooEarly};
use courser::{ClientConfig, Connection, EarlyDataOptions, Endpoint};
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Empty};

use super::{Running, start_with, within};
use crate::common::loopback;

/// Answers with the fact whether the request came in early data.
async fn is_early(request: Request) -> &'static str {
    match request.extensions().get::<EarlyData>() {
        Some(EarlyData) => "early",
        None => "late",
    }
}

fn app() -> Router {
    Router::new()
        .route("/search", get(is_early))
        .route("/order", post(is_early))
}

/// A client of HTTP/3 that keeps tickets and settings.
struct Client {
    endpoint: Endpoint,
    settings: Option<Settings>,
}

impl Client {
    /// Returns a client that has met the server once.
    async fn met(running: &Running) -> Self {
        let mut endpoint = Endpoint::client(loopback()).expect("a port");
        let root = running.identity.certificate();
        let config = ClientConfig::with_roots([root]).expect("a certificate");
        endpoint.set_default_client_config(config.alpn([h3::ALPN]).early_data(true));
        let mut client = Self {
            endpoint,
            settings: None,
        };
        client.meet(running).await;
        client
    }

    async fn meet(&mut self, running: &Running) {
        let connection = self.connection(running).await;
        assert_eq!(connection.early_data(), courser::EarlyData::None);
        let http = h3::Client::new(connection);
        // Tickets precede the response.
        let (status, text) = ask(&http, Method::GET, "/search")
            .await
            .expect("a response");
        assert_eq!((status, &*text), (StatusCode::OK, "late"));
        self.settings = within(http.settings()).await;
    }

    async fn connection(&self, running: &Running) -> Connection {
        let address = running.handle.local_addr();
        let connecting = self.endpoint.connect(address, "localhost");
        let connecting = connecting.expect("configured").early();
        within(connecting).await.expect("usable")
    }

    /// Returns a client on a connection that has waited for nothing. On a machine under load the
    /// handshake may nevertheless be complete before a request arrives.
    async fn early(&self, running: &Running) -> h3::Client {
        let connection = self.connection(running).await;
        assert_ne!(connection.early_data(), courser::EarlyData::None);
        let config = h3::Config::new(courser::Side::Client);
        h3::Client::resume(connection, config, self.settings.expect("they arrived"))
    }
}

async fn ask(
    client: &h3::Client,
    method: Method,
    path: &str,
) -> Result<(StatusCode, String), h3::Error> {
    let request = http::Request::builder()
        .method(method)
        .uri(format!("https://localhost{path}"))
        .body(Empty::<bytes::Bytes>::new())
        .expect("a valid request");
    let response = within(client.send(request)).await?;
    let status = response.status();
    let body = within(response.into_body().collect()).await?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

/// True for an early request that was sent back, and for one that arrived after the handshake.
fn is_never_early((status, text): &(StatusCode, String)) -> bool {
    *status == StatusCode::TOO_EARLY || (*status == StatusCode::OK && text == "late")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn safe_requests_are_answered_early_and_others_sent_back() {
    let running = start_with(app(), |server| {
        server.early_data(EarlyDataOptions::default())
    });
    let client = Client::met(&running).await;
    let http = client.early(&running).await;
    // Both requests leave before the server has answered.
    let (found, refused) = tokio::join!(
        ask(&http, Method::GET, "/search"),
        ask(&http, Method::POST, "/order")
    );
    assert_eq!(found.expect("a response").0, StatusCode::OK);
    assert!(is_never_early(&refused.expect("a response")));
    let fate = within(http.quic().authenticated()).await;
    assert_eq!(fate, Ok(courser::EarlyData::Accepted));
    let again = ask(&http, Method::POST, "/order")
        .await
        .expect("a response");
    assert_eq!(again, (StatusCode::OK, "late".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_decides_by_route() {
    let running = start_with(app(), |server| {
        let policy = TooEarly::unless(|request| request.uri().path() == "/order");
        let options = EarlyDataOptions::default();
        server.early_data(options).early_requests(policy)
    });
    let client = Client::met(&running).await;
    let http = client.early(&running).await;
    let (search, order) = tokio::join!(
        ask(&http, Method::GET, "/search"),
        ask(&http, Method::POST, "/order")
    );
    assert!(is_never_early(&search.expect("a response")));
    assert_eq!(order.expect("a response").0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_in_refused_early_data_are_not_processed() {
    // A server whose store forgets everything, as after a restart.
    let options = EarlyDataOptions {
        filter: Arc::new(Never),
        ..EarlyDataOptions::default()
    };
    let running = start_with(app(), |server| server.early_data(options));
    let client = Client::met(&running).await;
    let http = client.early(&running).await;
    match ask(&http, Method::GET, "/search").await {
        // The handshake was complete first, and the request left before the connection was closed.
        Ok((_, text)) => assert_eq!(text, "late"),
        Err(error @ h3::Error::EarlyDataRejected) => assert!(error.is_unprocessed()),
        // The same, and it was closed before the response.
        Err(error) => assert!(matches!(error, h3::Error::Connection(_)), "{error:?}"),
    }
}

/// A filter that is certain of no ticket.
#[derive(Debug)]
struct Never;

impl courser::ReplayFilter for Never {
    fn is_first_use(&self, _ticket: &[u8], _now: Duration) -> bool {
        false
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_early_data_issues_no_tickets_for_it() {
    let running = start_with(app(), |server| server);
    let client = Client::met(&running).await;
    let connection = client.connection(&running).await;
    assert_eq!(connection.early_data(), courser::EarlyData::None);
}
