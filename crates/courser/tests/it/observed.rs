//! Addresses of clients that servers report, between real sockets. draft-ietf-quic-address-discovery-00.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use courser::{AddressObservations, Connection, Endpoint, PathId, TransportConfig};

use crate::common::{Pair, pair_between, until, within};

fn config(address_observations: AddressObservations) -> TransportConfig {
    TransportConfig {
        address_observations,
        max_paths: 4,
        ..TransportConfig::default()
    }
}

/// A pair whose client can send from each address of loopback.
fn pair(client: AddressObservations, server: AddressObservations) -> Pair {
    let mut pair = pair_between(config(client), config(server), |config| config);
    let mut client = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()).expect("a port");
    client.set_default_client_config(pair.client_config.clone());
    pair.client = client;
    pair
}

async fn observed(connection: &Connection) -> std::net::SocketAddr {
    let changed = connection.observed_address_changed(None);
    within(10, changed).await.expect("open")
}

#[tokio::test]
async fn client_that_asks_learns_its_address() {
    let pair = pair(AddressObservations::Receive, AddressObservations::Provide);
    let (client, server) = pair.connect().await;
    assert_eq!(observed(&client).await, server.remote_address());
    assert_eq!(client.observed_address(), Some(server.remote_address()));
    assert_eq!(
        server.observed_address(),
        None,
        "the client reports nothing"
    );
    pair.finish().await;
}

#[tokio::test]
async fn both_ends_may_report() {
    let pair = pair(AddressObservations::Both, AddressObservations::Both);
    let (client, server) = pair.connect().await;
    assert_eq!(observed(&client).await, server.remote_address());
    assert_eq!(observed(&server).await, pair.address);
    pair.finish().await;
}

#[tokio::test]
async fn each_path_has_its_address() {
    let pair = pair(AddressObservations::Receive, AddressObservations::Provide);
    let (client, server) = pair.connect().await;
    let local = IpAddr::from([127, 0, 0, 2]);
    let mut path = client.open_path(local).await;
    for _ in 0..100 {
        if path.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        path = client.open_path(local).await;
    }
    let path = path.expect("opened");
    until(|| client.observed_addresses().len() == 2).await;
    let all = client.observed_addresses();
    let of_path = |path| {
        all.iter()
            .find(|it| it.path == path)
            .expect("reported")
            .address
    };
    assert_eq!(of_path(path).ip(), local);
    assert_eq!(of_path(PathId::ZERO), server.remote_address());
    pair.finish().await;
}

#[tokio::test]
async fn change_of_the_address_is_reported() {
    let pair = pair(AddressObservations::Receive, AddressObservations::Provide);
    let (client, server) = pair.connect().await;
    let first = observed(&client).await;
    client
        .migrate(IpAddr::from([127, 0, 0, 3]))
        .await
        .expect("allowed");
    let changed = client.observed_address_changed(Some(first));
    let second = within(10, changed).await.expect("open");
    assert_eq!(second.ip(), IpAddr::from([127, 0, 0, 3]));
    assert_eq!(second, server.remote_address());
    pair.finish().await;
}

#[tokio::test]
async fn nothing_is_reported_unless_both_ends_want_it() {
    use AddressObservations::{None as Off, Provide, Receive};
    for (of_client, of_server) in [
        (Off, Provide),
        (Receive, Off),
        (Receive, Receive),
        (Provide, Provide),
    ] {
        let pair = pair(of_client, of_server);
        let (client, server) = pair.connect().await;
        let mut stream = client.open_uni().await.expect("open");
        stream.write_all(&[7; 10_000]).await.expect("open");
        stream.finish().expect("open");
        let mut stream = within(10, server.accept_uni()).await.expect("open");
        within(10, stream.read_to_end(10_000))
            .await
            .expect("complete");
        assert_eq!(
            (client.observed_address(), server.observed_address()),
            (None, None)
        );
        pair.finish().await;
    }
}
