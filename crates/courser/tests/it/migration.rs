//! Clients that change their socket, their local address or their network.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use crate::common::{Pair, loopback, pair_with, pattern, spawn, until, within};
use courser::{Connection, Endpoint, MigrateError, TransportConfig};

/// A pair whose client can send from each address of loopback.
fn pair(migration: bool) -> Pair {
    let mut pair = pair_with(TransportConfig::default(), |config| {
        config.migration(migration)
    });
    let mut client = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()).expect("a port");
    client.set_default_client_config(pair.client_config.clone());
    pair.client = client;
    pair
}

fn local(last: u8) -> IpAddr {
    IpAddr::from([127, 0, 0, last])
}

/// Echoes all streams of a connection.
fn echo(connection: &Connection) {
    let connection = connection.clone();
    spawn(async move {
        while let Ok((mut send, mut receive)) = connection.accept_bi().await {
            spawn(async move {
                let copied = tokio::io::copy(&mut receive, &mut send).await;
                copied.map(|_| send.finish().expect("not finished"))
            });
        }
    });
}

/// Sends bytes to the echo in two parts, with a change between them, and compares what comes back.
async fn ask(connection: &Connection, change: impl AsyncFnOnce()) {
    const LEN: usize = 1_000_000;
    let question = pattern(3, LEN);
    let (mut send, mut receive) = connection.open_bi().await.expect("open");
    let mut answer = vec![0; LEN];
    let write = async {
        let (first, second) = question.split_at(LEN / 2);
        send.write_all(first).await.expect("open");
        change().await;
        send.write_all(second).await.expect("open");
        send.finish().expect("not finished");
    };
    let read = async { receive.read_exact(&mut answer).await.expect("complete") };
    within(30, async { tokio::join!(write, read) }).await;
    assert!(answer == question, "the echo differs");
}

#[tokio::test]
async fn rebinding_moves_a_connection_with_data_in_flight() {
    let pair = pair(true);
    let (client, server) = pair.connect().await;
    echo(&server);
    ask(&client, async || {}).await;
    let before = server.remote_address();
    let old = pair.client.local_addr().expect("bound");
    let socket = UdpSocket::bind(loopback()).expect("a port");
    let new = socket.local_addr().expect("bound");
    ask(&client, async || {
        pair.client.rebind(socket).expect("a socket");
    })
    .await;
    until(|| server.remote_address() == new).await;
    assert_ne!(before, new);
    assert_eq!(pair.client.local_addr().expect("bound"), new);
    ask(&client, async || {}).await;
    // The old socket is closed once the path is forgotten, and new connections use the new one.
    within(30, async {
        while UdpSocket::bind(old).is_err() {
            ask(&client, async || {}).await;
        }
    })
    .await;
    let (_second, at_server) = pair.connect().await;
    assert_eq!(at_server.remote_address(), new);
    pair.finish().await;
}

#[tokio::test]
async fn a_connection_moves_between_the_addresses_of_its_socket() {
    let pair = pair(true);
    let (client, server) = pair.connect().await;
    let (other, other_server) = pair.connect().await;
    echo(&server);
    echo(&other_server);
    let port = pair.client.local_addr().expect("bound").port();
    for last in [2, 3] {
        let moving = client.clone();
        ask(&client, async || {
            let moved = moving.migrate(local(last)).await;
            assert_eq!(moved, Ok(()));
        })
        .await;
        let new = SocketAddr::from((local(last), port));
        until(|| server.remote_address() == new).await;
        assert_eq!(client.local_ip(), Some(local(last)));
    }
    assert_eq!(
        other_server.remote_address().ip(),
        local(1),
        "one client, two addresses"
    );
    ask(&other, async || {}).await;
    ask(&client, async || {}).await;
    pair.finish().await;
}

#[tokio::test]
async fn addresses_that_cannot_be_used_are_refused() {
    let pair = pair(true);
    let (client, server) = pair.connect().await;
    let foreign = [
        IpAddr::from([192, 0, 2, 77]),
        IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]),
    ];
    for foreign in foreign {
        assert_eq!(client.migrate(foreign).await, Err(MigrateError::Address));
    }
    let moved = server.migrate(local(1)).await;
    let refused = courser_transport::MigrateError::NotClient;
    assert!(
        moved == Err(MigrateError::Refused(refused)) || moved == Err(MigrateError::Address),
        "{moved:?}"
    );
    pair.finish().await;
}

#[tokio::test]
async fn client_does_not_migrate_if_the_server_forbids_it() {
    let pair = pair(false);
    let (client, server) = pair.connect().await;
    echo(&server);
    let before = server.remote_address();
    let forbidden = courser_transport::MigrateError::Forbidden;
    // The handshake may not be confirmed yet.
    ask(&client, async || {}).await;
    let moved = client.migrate(local(2)).await;
    assert_eq!(moved, Err(MigrateError::Refused(forbidden)));
    ask(&client, async || {
        pair.client.rebind_to(loopback()).expect("a port");
    })
    .await;
    ask(&client, async || {}).await;
    assert_eq!(server.remote_address(), before, "RFC 9000 §9");
    let (_second, at_server) = pair.connect().await;
    let new = pair.client.local_addr().expect("bound").port();
    assert_eq!(at_server.remote_address().port(), new);
    pair.finish().await;
}

#[tokio::test]
async fn network_change_needs_a_new_path_and_loses_no_data() {
    let pair = pair(true);
    let (client, server) = pair.connect().await;
    echo(&server);
    ask(&client, async || {}).await;
    let challenges = || server.stats().frames_received.path_challenge;
    assert_eq!(challenges(), 0);
    ask(&client, async || pair.client.network_changed()).await;
    until(|| challenges() > 0).await;
    let first = challenges();
    // The last move is over, and spare connection IDs have arrived.
    until(|| client.stats().frames_received.path_response > 0).await;
    ask(&client, async || {}).await;
    ask(&client, async || client.network_changed()).await;
    until(|| challenges() > first).await;
    server.network_changed();
    ask(&client, async || {}).await;
    assert!(client.close_reason().is_none() && server.close_reason().is_none());
    pair.finish().await;
}

#[tokio::test]
async fn old_sockets_are_bounded_after_many_rebinds() {
    let pair = pair(true);
    let (client, server) = pair.connect().await;
    echo(&server);
    ask(&client, async || {}).await;
    for _ in 0..12 {
        ask(&client, async || {
            pair.client.rebind_to(loopback()).expect("a port");
        })
        .await;
        let port = pair.client.local_addr().expect("bound").port();
        until(|| server.remote_address().port() == port).await;
    }
    pair.finish().await;
}

/// The connection moves with the connection IDs that it has, and stays where the last one led it.
#[tokio::test]
async fn a_connection_that_cannot_move_keeps_its_socket() {
    let pair = pair(true);
    let (client, server) = pair.connect().await;
    echo(&server);
    ask(&client, async || {}).await;
    ask(&client, async || {
        for _ in 0..12 {
            pair.client.rebind_to(loopback()).expect("a port");
        }
    })
    .await;
    pair.finish().await;
}

#[tokio::test]
async fn a_client_moves_to_the_address_that_its_server_prefers() {
    let mut pair = pair(true);
    let identity = courser::Identity::dev().expect("random numbers");
    let config = courser::ServerConfig::with_identity(&identity)
        .expect("matching key")
        .alpn(["test"]);
    // The port is known once the socket is bound.
    let everywhere = (Ipv4Addr::UNSPECIFIED, 0).into();
    let server = Endpoint::server(config.clone(), everywhere).expect("a port");
    let port = server.local_addr().expect("bound").port();
    let preferred = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 5), port);
    let config = config.preferred_address(preferred, None).migration(false);
    server.set_server_config(Some(config)).expect("it works");
    let trust = courser::ClientConfig::with_roots([identity.certificate()])
        .expect("a certificate")
        .alpn(["test"]);
    pair.client.set_default_client_config(trust.clone());
    pair.address = (Ipv4Addr::LOCALHOST, port).into();
    pair.server = server;
    let (client, server) = pair.connect().await;
    echo(&server);
    ask(&client, async || {}).await;
    until(|| client.remote_address() == preferred.into()).await;
    ask(&client, async || {}).await;
    assert_eq!(server.local_ip(), Some(local(5)));
    // Migration is forbidden for the first address only.
    assert_eq!(client.migrate(local(2)).await, Ok(()));
    ask(&client, async || {}).await;
    let ignores = trust.follow_preferred_address(false);
    pair.client.set_default_client_config(ignores);
    let (client, server) = pair.connect().await;
    echo(&server);
    ask(&client, async || {}).await;
    assert_eq!(client.remote_address(), pair.address);
    pair.finish().await;
}

#[tokio::test]
async fn client_without_spare_connection_ids_does_not_migrate() {
    let mut pair = pair(true);
    let mut config = courser::EndpointConfig::from_seed([7; 32]);
    config.connection_id_len = 0;
    let mut client = Endpoint::bind(config, None, (Ipv4Addr::UNSPECIFIED, 0).into());
    let client = client.as_mut().expect("a port");
    client.set_default_client_config(pair.client_config.clone());
    pair.client = client.clone();
    let (client, server) = pair.connect().await;
    echo(&server);
    ask(&client, async || {}).await;
    let refused = courser_transport::MigrateError::WithoutConnectionIds;
    let moved = client.migrate(local(2)).await;
    assert_eq!(moved, Err(MigrateError::Refused(refused)), "RFC 9000 §5.1");
    let before = server.remote_address();
    pair.client.rebind_to(loopback()).expect("a port");
    ask(&client, async || {}).await;
    assert_eq!(server.remote_address(), before);
    pair.finish().await;
}
