//! Extensions that requests get beside their peer.

use axum::routing::get;
use axum::{Extension, Router};
use courser::server::{Peer, Protocol};

use super::client::Client;
use super::{start_with, within};

/// The first of two extensions of the same type.
#[derive(Clone)]
struct Number(u8);

#[derive(Clone)]
struct Address(String);

async fn answer(
    Extension(Number(number)): Extension<Number>,
    Extension(Address(address)): Extension<Address>,
    Extension(peer): Extension<Peer>,
) -> String {
    assert_eq!(peer.address().to_string(), address);
    number.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_all_protocols_have_the_added_extensions() {
    let app = Router::new().route("/", get(answer));
    let running = start_with(app, |server| {
        server
            .extension(|_| Number(1))
            .extension(|peer| Address(peer.address().to_string()))
            .extension(|_| Number(2))
    });
    for protocol in Protocol::ALL {
        let address = running.handle.local_addr();
        let client = within(Client::connect(protocol, address, &running.identity)).await;
        let text = within(client.expect("a server").text("/")).await;
        assert_eq!(text, "2", "{protocol}: the later one of a type");
    }
}

#[cfg(feature = "axum")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_of_axum_extract_the_address_of_the_client() {
    use std::net::SocketAddr;

    use axum::extract::ConnectInfo;

    let app = || {
        let show =
            |ConnectInfo(address): ConnectInfo<SocketAddr>| async move { address.to_string() };
        Router::new().route("/", get(show))
    };
    let running = start_with(app(), courser::Server::connect_info);
    let without = super::start(app());
    for protocol in Protocol::ALL {
        let address = running.handle.local_addr();
        let client = within(Client::connect(protocol, address, &running.identity)).await;
        let text = within(client.expect("a server").text("/")).await;
        let seen: SocketAddr = text.parse().expect("an address");
        assert!(seen.ip().is_loopback() && seen != address, "{seen}");

        let address = without.handle.local_addr();
        let client = within(Client::connect(protocol, address, &without.identity)).await;
        let response = within(client.expect("a server").get("/")).await;
        assert_eq!(response.expect("an answer").status(), 500, "as with axum");
    }
}
