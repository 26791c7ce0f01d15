//! Link-local addresses, which need a zone (RFC 4007 §6).

use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use quinn::{Endpoint, EndpointConfig, Runtime as _, TokioRuntime, default_runtime};

use crate::configs;
use crate::namespace::{ADDRESS, is_inside, zone};

/// Creates an endpoint on a socket of the program, so that no system socket is queried.
fn on_own_socket(server: Option<quinn::ServerConfig>, address: SocketAddr) -> Endpoint {
    let socket = UdpSocket::bind(address).unwrap();
    let socket = TokioRuntime.wrap_udp_socket(socket).unwrap();
    let runtime = default_runtime().unwrap();
    Endpoint::new_with_abstract_socket(EndpointConfig::default(), server, socket, runtime).unwrap()
}

#[test]
fn connections_to_link_local_addresses_keep_their_zone() {
    if !is_inside() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let any: SocketAddr = (Ipv6Addr::UNSPECIFIED, 0).into();
        for is_own in [false, true] {
            let (server, client) = configs();
            let (server, mut endpoint) = match is_own {
                false => (
                    Endpoint::server(server, any).unwrap(),
                    Endpoint::client(any).unwrap(),
                ),
                true => (on_own_socket(Some(server), any), on_own_socket(None, any)),
            };
            endpoint.set_default_client_config(client);
            let port = server.local_addr().unwrap().port();
            let address: SocketAddr = format!("[{ADDRESS}%{}]:{port}", zone()).parse().unwrap();
            let connecting = endpoint.connect(address, "localhost").unwrap();
            let accepting = async { server.accept().await.unwrap().await };
            let both = async { tokio::try_join!(connecting, accepting).unwrap() };
            let both = tokio::time::timeout(Duration::from_secs(20), both).await;
            let (connected, accepted) = both.unwrap();
            assert_eq!(connected.remote_address(), address, "own socket: {is_own}");
            let peer = accepted.remote_address().to_string();
            let begins = format!("[{ADDRESS}%{}]:", zone());
            assert!(peer.starts_with(&begins), "own socket: {is_own}: {peer}");
        }
    });
}
