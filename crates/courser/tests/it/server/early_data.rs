//! HTTP/3 requests in early data. RFC 8470, RFC 9114 §7.2.4.2 and §10.9.

use std::net::IpAddr;
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
use crate::common::relay::Relay;
use crate::common::{loopback, until};

/// Answers whether the request arrived in early data.
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

/// A client of HTTP/3 that keeps tickets and settings, behind a relay.
struct Client {
    endpoint: Endpoint,
    settings: Option<Settings>,
    relay: Relay,
}

impl Client {
    /// Returns a client that has met the server once.
    async fn met(running: &Running) -> Self {
        Self::met_with(running, |config| config).await
    }

    async fn met_with(
        running: &Running,
        change: impl FnOnce(ClientConfig) -> ClientConfig,
    ) -> Self {
        let mut endpoint = Endpoint::client(loopback()).expect("a port");
        let root = running.identity.certificate();
        let config = ClientConfig::with_roots([root]).expect("a certificate");
        let config = config.alpn([h3::ALPN]).early_data(true);
        endpoint.set_default_client_config(change(config));
        let mut client = Self {
            endpoint,
            settings: None,
            relay: Relay::new(running.handle.local_addr()),
        };
        client.meet().await;
        client
    }

    async fn meet(&mut self) {
        let connection = self.connection().await;
        assert_eq!(connection.early_data(), courser::EarlyData::None);
        let http = h3::Client::new(connection);
        // Tickets precede the response.
        let (status, text) = ask(&http, Method::GET, "/search")
            .await
            .expect("a response");
        assert_eq!((status, &*text), (StatusCode::OK, "late"));
        self.settings = within(http.settings()).await;
    }

    async fn connection(&self) -> Connection {
        let connecting = self.endpoint.connect(self.relay.address, "localhost");
        let connecting = connecting.expect("configured").early();
        within(connecting).await.expect("usable")
    }

    /// Returns a client on a connection whose handshake is complete after [`Relay::release`] only.
    async fn early(&self) -> h3::Client {
        self.relay.hold_answers();
        self.resume().await
    }

    async fn resume(&self) -> h3::Client {
        let connection = self.connection().await;
        assert_eq!(connection.early_data(), courser::EarlyData::Offered);
        let config = h3::Config::new(courser::Side::Client);
        h3::Client::resume(connection, config, self.settings.expect("arrived"))
    }

    /// Lets the answers pass once the server has received this many requests.
    async fn release_after(&self, running: &Running, requests: u64) {
        until(|| {
            let stats = running.handle.stats();
            stats.early_requests + stats.requests_too_early >= requests
        })
        .await;
        self.relay.release().await;
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

fn early() -> (StatusCode, String) {
    (StatusCode::OK, "early".to_owned())
}

fn late() -> (StatusCode, String) {
    (StatusCode::OK, "late".to_owned())
}

fn too_early() -> (StatusCode, String) {
    (StatusCode::TOO_EARLY, String::new())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn safe_requests_are_answered_early_and_others_sent_back() {
    let running = start_with(app(), |server| {
        server.early_data(EarlyDataOptions::default())
    });
    let client = Client::met(&running).await;
    let http = client.early().await;
    let (found, refused, ()) = tokio::join!(
        ask(&http, Method::GET, "/search"),
        ask(&http, Method::POST, "/order"),
        client.release_after(&running, 2)
    );
    assert_eq!(found.expect("a response"), early());
    assert_eq!(refused.expect("a response"), too_early());
    let fate = within(http.quic().authenticated()).await;
    assert_eq!(fate, Ok(courser::EarlyData::Accepted));
    let again = ask(&http, Method::POST, "/order").await;
    assert_eq!(again.expect("a response"), late());
    let stats = running.handle.stats();
    assert_eq!((stats.early_requests, stats.requests_too_early), (1, 1));
    let quic = stats.quic;
    assert_eq!((quic.early_data_accepted, quic.early_data_refused), (1, 0));
}

/// Attack A55. The first flight alone does not prove that its sender receives at its address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_from_an_address_without_proof_wait_for_the_handshake() {
    let running = start_with(app(), |server| {
        server.early_data(EarlyDataOptions::default())
    });
    let client = Client::met_with(&running, |config| config.token_store(None)).await;
    client.relay.hold_finished();
    // The handshake must not complete at the client before its request is on the way.
    let http = client.early().await;
    let release = async {
        until(|| client.relay.early_datagrams() > 0).await;
        client.relay.release_answers().await;
        // The client has the answer to its first flight, in which the request was, and repeats its
        // Finished after several probe timeouts.
        until(|| client.relay.held_finished() >= 6).await;
        let stats = running.handle.stats();
        assert_eq!(stats.http3.requests, 1, "that of the first connection");
        client.relay.release().await;
    };
    let (found, ()) = tokio::join!(ask(&http, Method::GET, "/search"), release);
    assert_eq!(found.expect("a response"), late());
    assert!(client.relay.early_datagrams() > 0);
    let stats = running.handle.stats();
    assert_eq!((stats.early_requests, stats.requests_too_early), (0, 0));
    assert_eq!(stats.early_data_without_token, 1);
    until(|| running.handle.stats().quic.early_data_accepted == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_decides_by_route() {
    let running = start_with(app(), |server| {
        let policy = TooEarly::unless(|request| request.uri().path() == "/order");
        let options = EarlyDataOptions::default();
        server.early_data(options).early_requests(policy)
    });
    let client = Client::met(&running).await;
    let http = client.early().await;
    let (search, order, ()) = tokio::join!(
        ask(&http, Method::GET, "/search"),
        ask(&http, Method::POST, "/order"),
        client.release_after(&running, 2)
    );
    assert_eq!(search.expect("a response"), too_early());
    assert_eq!(order.expect("a response"), early());
}

// One thread, so that the request leaves before the relay is asked to release the answers.
#[tokio::test]
async fn requests_in_refused_early_data_are_not_processed() {
    // A server whose store forgets everything, as after a restart.
    let options = EarlyDataOptions {
        filter: Arc::new(RejectsAll),
        ..EarlyDataOptions::default()
    };
    let running = start_with(app(), |server| server.early_data(options));
    let client = Client::met(&running).await;
    let http = client.early().await;
    let release = async {
        until(|| client.relay.early_datagrams() > 0).await;
        client.relay.release().await;
    };
    let (result, ()) = tokio::join!(ask(&http, Method::GET, "/search"), release);
    let error = result.expect_err("refused");
    assert!(matches!(error, h3::Error::EarlyDataRejected), "{error:?}");
    assert!(error.is_unprocessed());
    until(|| running.handle.stats().quic.early_data_refused == 1).await;
    let stats = running.handle.stats();
    assert_eq!((stats.early_requests, stats.requests_too_early), (0, 0));
    assert_eq!(stats.http3.requests, 1, "that of the first connection");
}

/// A filter that accepts no ticket.
#[derive(Debug)]
struct RejectsAll;

impl courser::ReplayFilter for RejectsAll {
    fn is_first_use(&self, _ticket: &[u8], _now: Duration) -> bool {
        false
    }
}

/// Records the addresses to which tickets were issued.
#[derive(Debug, Default)]
struct RecordsClients(std::sync::Mutex<Vec<Option<IpAddr>>>);

impl courser::ReplayFilter for RecordsClients {
    fn is_first_use(&self, _ticket: &[u8], _now: Duration) -> bool {
        true
    }

    fn is_first_use_from(&self, client: Option<IpAddr>, _ticket: &[u8], _now: Duration) -> bool {
        self.0.lock().expect("no panic").push(client);
        true
    }
}

/// Attack A271. The address of the first flight with early data may be forged.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uses_of_tickets_count_for_the_address_to_which_they_were_issued() {
    let filter = Arc::new(RecordsClients::default());
    let running = start_with(app(), |server| {
        server.early_data(EarlyDataOptions {
            filter: filter.clone(),
            ..EarlyDataOptions::default()
        })
    });
    let root = running.identity.certificate();
    let config = ClientConfig::with_roots([root]).expect("a certificate");
    let config = config.alpn([h3::ALPN]).early_data(true);
    for (source, offered) in [
        ([127, 1, 0, 1], courser::EarlyData::None),
        ([127, 2, 0, 1], courser::EarlyData::Offered),
    ] {
        let endpoint = Endpoint::client((source, 0).into()).expect("a port");
        let address = running.handle.local_addr();
        let connecting = endpoint.connect_with(config.clone(), address, "localhost");
        let connection = within(connecting.expect("configured").early()).await;
        let connection = connection.expect("usable");
        assert_eq!(connection.early_data(), offered);
        let http = h3::Client::new(connection);
        let asked = within(ask(&http, Method::GET, "/search")).await;
        assert_eq!(asked.expect("a response").0, StatusCode::OK);
    }
    let clients = filter.0.lock().expect("no panic").clone();
    assert_eq!(clients, [Some(IpAddr::from([127, 1, 0, 1]))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_early_data_issues_no_tickets_for_it() {
    let running = start_with(app(), |server| server);
    let client = Client::met(&running).await;
    let connection = client.connection().await;
    assert_eq!(connection.early_data(), courser::EarlyData::None);
}
