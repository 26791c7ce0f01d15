//! Tests clients without connection IDs, which are distinguished by address. RFC 9000 §5.1.

use super::*;

fn pair() -> Pair {
    Pair::with(Setup {
        client_cid_len: 0,
        ..Setup::default()
    })
}

#[test]
fn client_without_ids_connects_and_leaves_no_state() {
    let mut pair = pair();
    pair.connect();
    assert!(pair.client.sent.iter().take(2).all(|datagram| {
        packet::decode(&datagram.bytes, 0, 0).is_ok_and(|packet| packet.source.is_empty())
    }));
    let now = pair.now;
    pair.client.connection().close(now, 0, b"");
    pair.client.touch();
    pair.run_for(Duration::from_secs(10));
    assert_clean(&pair.client, "client");
    assert_clean(&pair.server, "server");
}

#[test]
fn second_connection_to_the_same_server_is_refused_while_the_first_exists() {
    let mut pair = pair();
    pair.connect();
    let config = pair.client_config.clone();
    let (now, peer) = (pair.now, pair.server.address);
    let endpoint = &mut pair.client.endpoint;
    assert_eq!(
        endpoint.connect(now, &config, peer, "localhost"),
        Err(ConnectError::NoFreeConnectionId)
    );
    let other = SocketAddr::from(([10, 0, 0, 3], 4433));
    assert!(endpoint.connect(now, &config, other, "localhost").is_ok());
    assert_eq!(endpoint.connections(), 2, "the refused one is removed");
}

#[test]
fn datagrams_find_their_connection_when_the_platform_reports_the_local_address() {
    let mut pair = pair();
    let flight = catch_first_flight(&mut pair);
    pair.link.filter = Some(Box::new(|_, _| false));
    for datagram in flight {
        pair.deliver(datagram);
    }
    pair.drive();
    for datagram in pair.server.sent.clone() {
        let meta = ReceiveMeta {
            path: FourTuple {
                peer: datagram.from,
                local: Some(pair.client.address.ip()),
            },
            ecn: Ecn::NotEct,
            segment_size: datagram.bytes.len(),
        };
        let mut bytes = datagram.bytes;
        pair.client
            .endpoint
            .handle_datagrams(pair.now, &mut bytes, &meta);
    }
    pair.drive();
    assert!(
        pair.client.has(&Event::Connected),
        "{:?}",
        pair.client.events
    );
}

#[test]
fn restarted_server_resets_a_client_without_ids() {
    let mut pair = pair();
    pair.connect();
    pair.restart_server();
    pair.client.connection().pings().request();
    pair.client.touch();
    assert!(pair.run_until(Duration::from_secs(1), |pair| lost(&pair.client).is_some()));
    assert_eq!(lost(&pair.client), Some(&ConnectionError::Reset));
}

#[test]
fn server_without_ids_serves_one_connection_per_address() {
    let mut pair = Pair::new();
    let mut config = EndpointConfig::from_seed([5; 32]);
    config.connection_id_len = 0;
    let server = Some(Arc::clone(&pair.server_config));
    pair.server.endpoint = Endpoint::new(config, server, [6; 32]);
    pair.connect();
    pair.client.events.clear();
    pair.start();
    pair.run_for(Duration::from_secs(12));
    assert_eq!(
        lost(&pair.client),
        Some(&ConnectionError::HandshakeTimedOut)
    );
    let stats = pair.server.endpoint.stats();
    assert_eq!(
        (stats.connections, stats.half_open, stats.waiting),
        (1, 0, 0)
    );
}
