//! Admission of clients: addresses, their shares, and the busy switch.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use courser::server::{Limits, Protocol};
use courser::{
    AddressFilter, AddressPrefix, ClientConfig, Endpoint, EndpointStats, Identity, RetryPolicy,
    TransportConfig, h3, serve,
};

use super::client::{BoxError, Client};
use super::{Running, start, start_with, within};
use crate::common::relay::Relay;
use crate::common::{loopback, until};

fn app() -> Router {
    Router::new().route("/", get(|| async { "served" }))
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

fn blocking(list: &str) -> AddressFilter {
    AddressFilter::new(&AddressPrefix::parse_list(list).expect("a list"), &[])
}

/// Connects from this address and sends one request. No answer for four seconds is an error.
async fn connect(
    running: &Running,
    protocol: Protocol,
    source: [u8; 4],
) -> Result<Client, BoxError> {
    let address = running.handle.local_addr();
    let source = SocketAddr::from((source, 0));
    let client = Client::connect_from(source, protocol, address, &running.identity);
    let mut client = tokio::time::timeout(PATIENCE, client).await??;
    client.get("/").await?;
    Ok(client)
}

/// Returns true if a client is refused, or has no answer after a second.
async fn gets_no_response(running: &Running, protocol: Protocol) -> bool {
    let client = connect(running, protocol, ONE);
    let waited = tokio::time::timeout(Duration::from_secs(1), client).await;
    waited.map_or(true, |client| client.is_err())
}

const PATIENCE: Duration = Duration::from_secs(4);
const ONE: [u8; 4] = [127, 0, 0, 1];
/// An address of another network. Only Linux has more than one loopback address.
const OTHER: [u8; 4] = [127, 0, 1, 2];

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_addresses_are_not_served_and_their_connections_end() {
    for protocol in Protocol::ALL {
        let running = start_with(app(), |server| server.address_filter(blocking("127.0.0.1")));
        assert!(
            gets_no_response(&running, protocol).await,
            "{protocol}: blocked"
        );
        assert!(running.handle.stats().refusals.blocked >= 1, "{protocol}");
        running.handle.set_address_filter(AddressFilter::default());
        let mut first = within(connect(&running, protocol, ONE))
            .await
            .expect("allowed");
        let mut second = within(connect(&running, protocol, OTHER))
            .await
            .expect("allowed");
        running.handle.set_address_filter(blocking("127.0.0.0/24"));
        assert!(
            within(first.get("/")).await.is_err(),
            "{protocol}: its connection has ended"
        );
        assert_eq!(within(second.text("/")).await, "served", "{protocol}");
        assert!(
            gets_no_response(&running, protocol).await,
            "{protocol}: blocked again"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_server_refuses_new_clients_and_serves_those_it_has() {
    for protocol in Protocol::ALL {
        let running = start(app());
        let mut first = within(connect(&running, protocol, ONE))
            .await
            .expect("served");
        running.handle.set_busy(true);
        let stats = running.handle.stats();
        assert!(
            stats.busy && !stats.ready && !running.handle.is_ready(),
            "{protocol}"
        );
        assert!(
            within(connect(&running, protocol, ONE)).await.is_err(),
            "{protocol}"
        );
        assert!(running.handle.stats().refusals.busy >= 1, "{protocol}");
        assert_eq!(within(first.text("/")).await, "served", "{protocol}");
        running.handle.set_busy(false);
        assert!(running.handle.is_ready(), "{protocol}");
        within(connect(&running, protocol, ONE))
            .await
            .expect("served again");
    }
}

/// Limit K102.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_connections_of_an_address_have_a_rate() {
    for protocol in Protocol::ALL {
        let limits = limits(|limits| limits.connection_rate = Some(1));
        let running = start_with(app(), |server| server.limits(limits));
        let all = (0..20).map(|_| connect(&running, protocol, ONE));
        let all = within(futures_util::future::join_all(all)).await;
        let served = all.iter().filter(|client| client.is_ok()).count();
        // One at once and one per second, because the test is short.
        assert!((1..15).contains(&served), "{protocol}: {served}");
        assert!(running.handle.stats().refusals.rate >= 1, "{protocol}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_one_address_may_have_a_maximum() {
    for protocol in Protocol::ALL {
        let limits = limits(|limits| limits.max_connections_per_address = Some(2));
        let running = start_with(app(), |server| server.limits(limits));
        let mut held = Vec::new();
        while let Ok(client) = within(connect(&running, protocol, ONE)).await {
            held.push(client);
            assert!(held.len() <= 2, "{protocol}");
        }
        assert_eq!(held.len(), 2, "{protocol}");
        assert!(running.handle.stats().refusals.address >= 1, "{protocol}");
        within(connect(&running, protocol, OTHER))
            .await
            .expect("another address");
    }
}

/// A client that keeps its tokens.
struct Visitor {
    endpoint: Endpoint,
    address: SocketAddr,
}

impl Visitor {
    fn new(running: &Running, address: SocketAddr) -> Self {
        let mut endpoint = Endpoint::client(loopback()).expect("a port");
        let root = running.identity.certificate();
        let config = ClientConfig::with_roots([root]).expect("a certificate");
        endpoint.set_default_client_config(config.alpn([h3::ALPN]));
        Self { endpoint, address }
    }

    fn begin(&self) -> courser::Connecting {
        let connecting = self.endpoint.connect(self.address, "localhost");
        connecting.expect("configured")
    }

    /// Connects and sends a request.
    async fn visit(&self) -> Result<h3::Client, BoxError> {
        let client = h3::Client::new(within(self.begin()).await?);
        within(Client::Http3(client.clone()).get("/")).await?;
        Ok(client)
    }
}

fn quic(running: &Running) -> EndpointStats {
    let stats = running.handle.stats();
    stats.listeners[0].quic.expect("QUIC is served")
}

/// Attack A180, limit K104. These clients send no second flight, like those of an attacker who forges the address
/// of others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_first_flights_do_not_lock_out_the_owner_of_the_address() {
    let limits = limits(|limits| limits.max_connections_per_address = Some(2));
    // The server keeps the forged clients for half of it (K12).
    let patient = TransportConfig {
        handshake_timeout: Duration::from_secs(120),
        ..TransportConfig::default()
    };
    let running = start_with(app(), |server| server.limits(limits).transport(patient));
    let address = running.handle.local_addr();
    let known = Visitor::new(&running, address);
    let first = known.visit().await.expect("below the limit");
    // The token arrives before the response does.
    first.quic().close(0u32.into(), b"");
    until(|| running.handle.stats().http3.connections_open == 0).await;

    let relay = Relay::new(address);
    relay.hold_answers();
    let forger = Visitor::new(&running, relay.address);
    let _forged = [forger.begin(), forger.begin()];
    until(|| quic(&running).half_open == 2).await;

    let with_token = known.visit().await.expect("its token proves the address");
    assert_eq!(quic(&running).retries_sent, 0);
    let newcomer = Visitor::new(&running, address);
    let with_retry = newcomer.visit().await.expect("a Retry proves the address");
    assert!(quic(&running).retries_sent >= 1);
    assert!(known.visit().await.is_err(), "two are the maximum");
    assert!(newcomer.visit().await.is_err(), "without a token too");
    assert!(running.handle.stats().refusals.address >= 2);
    for client in [with_token, with_retry] {
        assert!(client.quic().close_reason().is_none());
    }
}

/// Clients above a share or a maximum are refused at once if no Retry can be sent, and clients of a full server are
/// refused in any case.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_a_retry_cannot_help_are_refused_without_one() {
    let full = limits(|limits| limits.max_connections = 1);
    let maximum = limits(|limits| limits.max_connections_per_address = Some(1));
    for (limits, policy) in [(full, RetryPolicy::Auto), (maximum, RetryPolicy::Never)] {
        let running = start_with(app(), |server| server.limits(limits).retry(policy));
        let address = running.handle.local_addr();
        let first = Visitor::new(&running, address);
        let _held = first.visit().await.expect("below the limit");
        let second = Visitor::new(&running, address);
        assert!(second.visit().await.is_err(), "{policy:?}");
        assert_eq!(quic(&running).retries_sent, 0, "{policy:?}");
        let refusals = running.handle.stats().refusals;
        assert!(refusals.full + refusals.address >= 1, "{policy:?}");
    }
}

#[tokio::test]
async fn limits_out_of_range_are_refused() {
    let identity = Identity::dev().expect("random numbers");
    let refused = |change: fn(&mut Limits)| {
        let server = serve("127.0.0.1:0", &identity).limits(limits(change));
        server.bind().expect_err("refused").to_string()
    };
    let error = refused(|limits| limits.max_connections = 0);
    assert_eq!(
        error,
        "limits: max_connections: is 0, allowed is at least 1"
    );
    let error = refused(|limits| limits.max_connections_per_address = Some(20_001));
    let wanted = "limits: max_connections_per_address: is 20001, allowed is 1 to 20000";
    assert_eq!(error, wanted);
}
