//! The end of a server, and what handles that are left can do.

use std::net::UdpSocket;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use courser::server::Protocol;
use courser::{Identity, serve};

use super::client::Client;
use super::{start, within};
use crate::common::until;

fn app() -> Router {
    Router::new().route("/", get(|| async { "served" }))
}

/// A task for statistics, an admin page or metrics kept the UDP port after the end of the server, and clients were told
/// that the server was busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handles_keep_no_socket_open_after_the_drain() {
    let running = start(app());
    let (handle, address) = (running.handle.clone(), running.handle.local_addr());
    let endpoints = handle.endpoints();
    let mut client = within(Client::connect(Protocol::Http3, address, &running.identity))
        .await
        .expect("a server");
    assert_eq!(within(client.text("/")).await, "served");
    assert!(!handle.has_ended() && !handle.stats().ended);
    running.drained().await;
    assert!(handle.has_ended() && handle.stats().ended && !handle.is_ready());
    let free = UdpSocket::bind(address).expect("the port is free at once");
    drop(free);
    let stats = handle.stats();
    assert_eq!((stats.http3.requests, stats.http3.connections_open), (1, 0));
    let quic = stats.listeners[0].quic.expect("the counters are left");
    assert_eq!(quic.connections, 0);
    assert!(
        stats.listeners[0]
            .udp
            .expect("they are left")
            .received_bytes
            > 0
    );
    assert_eq!(endpoints.len(), 1);

    // Another server takes the port while the handle is there.
    let identity = Identity::dev().expect("random numbers");
    let next = serve(address, &identity)
        .bind()
        .expect("both ports are free");
    let next_handle = next.handle();
    let serving = crate::common::spawn(next.service(app()).into_future());
    let mut client = within(Client::connect(Protocol::Http3, address, &identity))
        .await
        .expect("the next server");
    assert_eq!(within(client.text("/")).await, "served");
    next_handle.drain();
    let drained = within(serving).await.expect("no panic");
    drained.expect("bound already");
    assert_eq!(handle.stats().http3.requests, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_server_closes_its_sockets_although_handles_are_left() {
    let running = start(app());
    let (handle, address) = (running.handle.clone(), running.handle.local_addr());
    let mut client = within(Client::connect(Protocol::Http3, address, &running.identity))
        .await
        .expect("a server");
    assert_eq!(within(client.text("/")).await, "served");
    running.task.abort();
    until(|| handle.has_ended()).await;
    assert!(within(client.get("/")).await.is_err());
    // The connection ends when its client has acknowledged that, or after three probe timeouts.
    until(|| UdpSocket::bind(address).is_ok()).await;
    until(|| std::net::TcpListener::bind(address).is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_is_dropped_before_it_serves_closes_its_sockets() {
    let identity = Identity::dev().expect("random numbers");
    let bound = serve("127.0.0.1:0", &identity).bind().expect("a port");
    let handle = bound.handle();
    let address = handle.local_addr();
    drop(bound);
    assert!(handle.has_ended());
    until(|| UdpSocket::bind(address).is_ok()).await;
    let endpoint = courser::Endpoint::client("127.0.0.1:0".parse().expect("an address"));
    let config = courser::ClientConfig::with_roots([identity.certificate()])
        .expect("valid")
        .transport_config(courser::TransportConfig {
            handshake_timeout: Duration::from_millis(500),
            ..Default::default()
        })
        .alpn(["h3"]);
    let connecting = endpoint
        .expect("a port")
        .connect_with(config, address, "localhost");
    let error = within(connecting.expect("valid")).await;
    let error = error.expect_err("nobody listens");
    assert!(
        !error.to_string().contains("busy"),
        "a finished server is not busy: {error}"
    );
}
