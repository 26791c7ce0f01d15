//! Addresses of clients that the server reports.

use std::net::Ipv4Addr;

use courser::{AddressObservations, ClientConfig, Endpoint, TransportConfig, h3};

use super::serving::Serving;
use super::within;
use crate::common::Folder;

/// Returns the address that the server reports within a round trip, as text, with that of the client.
async fn reported(flags: &[&str]) -> (Option<u16>, u16) {
    let folder = Folder::new();
    let path = folder.path().to_str().expect("UTF-8");
    let serving = Serving::start(&[&[path][..], flags].concat());
    let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()).expect("a port");
    let transport = TransportConfig {
        address_observations: AddressObservations::Receive,
        ..TransportConfig::default()
    };
    let config = ClientConfig::with_roots([serving.certificate()]).expect("a certificate");
    let config = config.alpn([h3::ALPN]).transport_config(transport);
    let connecting = endpoint.connect_with(config, serving.address, "localhost");
    let connection = within(connecting.expect("configured")).await;
    let connection = connection.expect("a server");
    within(connection.ping()).await.expect("an answer");
    let port = endpoint.local_addr().expect("bound").port();
    let seen = connection.observed_address();
    (seen.map(|address| address.port()), port)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_of_clients_are_reported_on_demand() {
    let (seen, port) = reported(&["--observe-addresses"]).await;
    assert_eq!(seen, Some(port));
    let (seen, _) = reported(&[]).await;
    assert_eq!(seen, None, "off by default");
}
