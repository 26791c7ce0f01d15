//! Tests correct and faulty connection ID generators of users. RFC 9000 §5.1.

use courser_wire::ConnectionId;

use super::*;
use crate::cid::{
    ConnectionIdError, ConnectionIdGenerator, ConnectionIdRotation, RandomIdGenerator,
    ServerIdGenerator,
};
use crate::testing::{Ids, client_address, server_address};

/// Creates a pair whose server has server ID `server`.
fn pair_of(server: u8) -> Pair {
    pair_with_ids(Arc::new(server_ids(server)))
}

fn server_ids(server: u8) -> ServerIdGenerator {
    ServerIdGenerator::new(2, &[server], 6).expect("within the ranges")
}

fn pair_with_ids(ids: Ids) -> Pair {
    Pair::with(Setup {
        server_ids: Some(ids),
        ..Setup::default()
    })
}

fn rotating(rotation: ConnectionIdRotation) -> Pair {
    pair_with_ids(Arc::new(RandomIdGenerator::default().rotate(rotation)))
}

/// Sends a PING from the client, and waits for the answer.
fn ping(pair: &mut Pair) {
    pair.client.connection().pings().request();
    pair.client.touch();
    pair.run_for(RTT * 2);
}

/// Returns the destination ID of the client's packets.
fn id_in_use(pair: &mut Pair) -> ConnectionId {
    pair.client.connection().ids().destination()
}

/// Returns all IDs of the server's connection.
fn server_side(pair: &mut Pair) -> Vec<ConnectionId> {
    pair.server.connection().ids().active().collect()
}

/// Intercepts and returns the next datagram of the client.
fn catch_ping(pair: &mut Pair) -> Datagram {
    pair.link.filter = Some(Box::new(|_, _| false));
    pair.client.connection().pings().request();
    pair.client.touch();
    pair.drive();
    pair.link.filter = None;
    pair.client.sent.last().expect("a PING").clone()
}

#[test]
fn all_ids_of_a_server_come_from_its_generator() {
    let mut pair = pair_of(0x5a);
    pair.connect();
    let ids = server_side(&mut pair);
    assert_eq!(ids.len(), 4);
    for id in ids {
        let server = ServerIdGenerator::server_id_of(&id, 2, 1);
        assert_eq!(server, Some(&[0x5a][..]), "{id}");
    }
    assert_eq!(id_in_use(&mut pair)[1], 0x5a);
    assert_eq!(pair.server.endpoint.stats().datagrams_foreign, 0);
}

#[test]
fn client_with_a_generator_is_addressed_by_its_ids() {
    let mut pair = Pair::with(Setup {
        client_ids: Some(Arc::new(server_ids(9))),
        ..Setup::default()
    });
    pair.connect();
    let id = pair.server.connection().ids().destination();
    assert_eq!((id[0] >> 5, id[1], id.len()), (2, 9, 8));
    let stats = pair.client.endpoint.stats();
    assert_eq!(stats.datagrams_foreign, 0);
}

#[test]
fn client_can_use_a_generator_of_empty_ids() {
    let mut pair = Pair::with(Setup {
        client_ids: Some(Arc::new(RandomIdGenerator::new(0).expect("no bytes"))),
        ..Setup::default()
    });
    pair.connect();
    assert!(pair.server.connection().ids().destination().is_empty());
}

#[test]
fn source_id_of_a_retry_comes_from_the_generator() {
    let mut setup = Setup {
        server_ids: Some(Arc::new(server_ids(0x33))),
        ..Setup::default()
    };
    setup.server.retry = crate::RetryPolicy::Always;
    let mut pair = Pair::with(setup);
    pair.connect();
    let retry = pair.server.sent.first().expect("a Retry");
    let retry = packet::decode(&retry.bytes, 0, 8).expect("a packet");
    assert_eq!(retry.kind, PacketKind::Retry);
    assert_eq!(retry.source[1], 0x33);
}

#[test]
fn restarted_server_with_key_and_generator_resets_its_connections() {
    let mut pair = pair_of(1);
    pair.connect();
    pair.restart_server();
    ping(&mut pair);
    assert_eq!(lost(&pair.client), Some(&ConnectionError::Reset));
    assert_eq!(pair.server.endpoint.stats().resets_sent, 1);
}

/// Attack A112: two servers share the key of their resets, and a datagram for one is sent to the
/// other.
#[test]
fn datagram_at_the_wrong_server_ends_no_connection() {
    let mut pair = pair_of(1);
    pair.connect();
    let caught = catch_ping(&mut pair);
    for (ids, resets) in [
        (Arc::new(server_ids(2)) as Ids, 0),
        (Arc::new(server_ids(1)), 1),
    ] {
        // The same keys, since it has the same seed.
        let mut other = pair_with_ids(ids);
        let answers = answers(&mut other, caught.clone());
        let stats = other.server.endpoint.stats();
        assert_eq!((answers.len(), stats.resets_sent), (resets, resets as u64));
        assert_eq!(stats.datagrams_foreign, 1 - resets as u64);
        assert_eq!(stats.datagrams_dropped, 1 - resets as u64);
        for answer in answers {
            // A server that accepts the ID as its own would reset the connection.
            pair.deliver(answer);
            pair.drive();
            assert_eq!(lost(&pair.client), Some(&ConnectionError::Reset));
        }
    }
}

#[test]
fn datagram_with_a_foreign_id_is_dropped_without_an_answer() {
    let mut pair = pair_of(1);
    pair.connect();
    let mut caught = catch_ping(&mut pair);
    for (at, value) in [(1, 0xff), (2, 0)] {
        let before = caught.bytes[at];
        caught.bytes[at] = value;
        assert!(answers(&mut pair, caught.clone()).is_empty(), "byte {at}");
        caught.bytes[at] = before;
    }
    assert_eq!(pair.server.endpoint.stats().datagrams_foreign, 2);
    ping(&mut pair);
    assert_eq!(lost(&pair.client), None);
}

/// A stateless reset has random bytes in place of the ID, which the generator rejects.
#[test]
fn reset_is_accepted_with_an_id_that_the_generator_rejects() {
    let mut pair = Pair::with(Setup {
        client_ids: Some(Arc::new(server_ids(9))),
        ..Setup::default()
    });
    pair.connect();
    let id = id_in_use(&mut pair);
    let mut bytes = vec![0x41; 40];
    bytes.extend(pair.server.endpoint.stateless.reset_token(&id));
    pair.deliver(Datagram {
        from: server_address(),
        to: client_address(),
        ecn: Ecn::NotEct,
        bytes,
    });
    pair.drive();
    assert_eq!(pair.client.endpoint.stats().datagrams_foreign, 1);
    assert_eq!(lost(&pair.client), Some(&ConnectionError::Reset));
}

#[test]
fn ids_are_replaced_after_their_lifetime() {
    let mut pair = rotating(ConnectionIdRotation {
        lifetime: Some(Duration::from_secs(3)),
        datagrams: None,
    });
    pair.connect();
    let (first, old) = (id_in_use(&mut pair), server_side(&mut pair));
    ping(&mut pair);
    assert_eq!(id_in_use(&mut pair), first, "it is not old");
    for round in 0..5 {
        let before = id_in_use(&mut pair);
        pair.run_for(Duration::from_secs(3));
        ping(&mut pair);
        // Its packet with the new IDs arrives, and the next packet of the client has one.
        ping(&mut pair);
        assert_ne!(id_in_use(&mut pair), before, "round {round}");
        assert_eq!(server_side(&mut pair).len(), 4, "round {round}");
    }
    let ids = server_side(&mut pair);
    assert!(old.iter().all(|id| !ids.contains(id)), "all are replaced");
    assert_eq!(lost(&pair.client), None);
    let routed = old
        .iter()
        .filter(|id| pair.server.endpoint.router.is_taken(id));
    assert_eq!(routed.count(), 0, "no route is left");
}

#[test]
fn ids_are_replaced_after_a_number_of_datagrams() {
    let mut pair = rotating(ConnectionIdRotation {
        lifetime: None,
        datagrams: Some(40),
    });
    pair.connect();
    pair.run_for(Duration::from_secs(2));
    let first = id_in_use(&mut pair);
    let received = pair.server.connection().stats().udp_received.datagrams;
    assert!(received < 35, "{received}");
    ping(&mut pair);
    assert_eq!(id_in_use(&mut pair), first, "too few datagrams");
    for _ in received..42 {
        ping(&mut pair);
    }
    assert_ne!(id_in_use(&mut pair), first);
    assert_eq!(lost(&pair.client), None);
}

/// Otherwise the frames with new IDs would keep the connection alive.
#[test]
fn idle_connection_keeps_its_ids_and_ends() {
    let mut pair = rotating(ConnectionIdRotation {
        lifetime: Some(Duration::from_secs(3)),
        datagrams: None,
    });
    pair.connect();
    let sent = pair.server.sent.len();
    pair.run_for(Duration::from_secs(40));
    assert_eq!(pair.server.sent.len(), sent);
    assert_eq!(lost(&pair.client), Some(&ConnectionError::TimedOut));
}

/// A generator that always makes the same ID.
#[derive(Debug)]
struct Constant(&'static [u8]);

impl ConnectionIdGenerator for Constant {
    fn length(&self) -> usize {
        8
    }

    fn generate(&self, _: &mut crate::Rng) -> ConnectionId {
        ConnectionId::new(self.0).expect("20 bytes at most")
    }
}

#[test]
fn generator_that_repeats_zeros_allows_one_connection() {
    let mut pair = Pair::with(Setup {
        client_ids: Some(Arc::new(Constant(&[0; 8]))),
        server_ids: Some(Arc::new(Constant(&[0; 8]))),
        ..Setup::default()
    });
    pair.connect();
    ping(&mut pair);
    assert_eq!(server_side(&mut pair).len(), 1, "no second ID");
    assert!(pair.server.endpoint.stats().connection_ids_failed > 0);
    let (now, config) = (pair.now, pair.client_config.clone());
    let another = pair
        .client
        .endpoint
        .connect(now, &config, server_address(), "localhost");
    assert_eq!(another, Err(ConnectError::NoFreeConnectionId));
    assert_eq!(lost(&pair.client), None);
}

#[test]
fn generator_with_a_wrong_length_fails_the_connection() {
    for bytes in [&[1; 7][..], &[1; 9], &[]] {
        let mut pair = Pair::with(Setup {
            client_ids: Some(Arc::new(Constant(bytes))),
            ..Setup::default()
        });
        let (now, config) = (pair.now, pair.client_config.clone());
        let connected = pair
            .client
            .endpoint
            .connect(now, &config, server_address(), "localhost");
        let (made, announced) = (bytes.len(), 8);
        let error = ConnectionIdError::Length { made, announced };
        assert_eq!(connected, Err(ConnectError::ConnectionIds(error)));
        assert_clean(&pair.client, "client");

        let mut pair = pair_with_ids(Arc::new(Constant(bytes)));
        pair.accepts = false;
        pair.start();
        pair.run_for(RTT);
        let (now, server) = (pair.now, &mut pair.server.endpoint);
        let incoming = server.poll_incoming().expect("a client");
        let error = server.accept(now, incoming, None).expect_err("no ID");
        assert!(error.to_string().contains("announced 8"), "{error}");
        assert_eq!(server.stats().half_open, 0);
    }
}

#[test]
fn length_of_a_generator_is_checked_with_the_configuration() {
    #[derive(Debug)]
    struct TooLong;
    impl ConnectionIdGenerator for TooLong {
        fn length(&self) -> usize {
            21
        }
        fn generate(&self, _: &mut crate::Rng) -> ConnectionId {
            ConnectionId::EMPTY
        }
    }
    let mut config = EndpointConfig::from_seed([1; 32]);
    config.connection_ids = Some(Arc::new(server_ids(1)));
    assert_eq!(config.validate(), Ok(()));
    config.connection_ids = Some(Arc::new(TooLong));
    let error = config.validate().expect_err("too long").to_string();
    assert!(error.contains("connection_ids.length: is 21"), "{error}");
}
