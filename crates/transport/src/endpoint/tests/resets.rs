//! Tests stateless resets that an end without state sends and its peer accepts. RFC 9000 §10.3.

use courser_wire::ConnectionId;
use courser_wire::frame::{Frame, NewConnectionId, RetireConnectionId};

use super::*;
use crate::testing::{client_address, server_address};

/// Sends a PING from the client.
fn ping(pair: &mut Pair) {
    pair.client.connection().pings().request();
    pair.client.touch();
    pair.drive();
}

/// Returns a short-header datagram from a port to a connection ID.
fn short(from: u16, destination: &[u8], len: usize) -> Datagram {
    let mut bytes = vec![0x40];
    bytes.extend_from_slice(destination);
    bytes.resize(len, 0xee);
    let (from, to) = (FirstDatagram::new(from).address, server_address());
    Datagram {
        from,
        to,
        ecn: Ecn::NotEct,
        bytes,
    }
}

/// Returns the token that the server has for one of its IDs.
fn token_of(pair: &Pair, id: &ConnectionId) -> [u8; 16] {
    pair.server.endpoint.stateless.reset_token(id)
}

/// Returns the destination ID of the client's packets.
fn id_in_use(pair: &mut Pair) -> ConnectionId {
    pair.client.connection().forging_ids().0
}

/// Returns the token by which the client accepts a reset.
fn reset_token(pair: &mut Pair) -> [u8; 16] {
    let id = id_in_use(pair);
    token_of(pair, &id)
}

/// Makes the server use an ID of the client with a token, which the first ID does not have. Then
/// restarts the client.
fn restart_client(pair: &mut Pair) {
    let id = id(&[0x77; 8]);
    let reset_token = pair.client.endpoint.stateless.reset_token(&id);
    let frame = NewConnectionId {
        sequence: 4,
        retire_prior_to: 1,
        id,
        reset_token,
    };
    pair.frame_to_server(&Frame::NewConnectionId(frame));
    let handle = pair.client.handle.expect("connected");
    pair.client.endpoint.remove_silently(handle);
    pair.server.connection().pings().request();
    pair.server.touch();
}

fn to_client(bytes: Vec<u8>) -> Datagram {
    Datagram {
        from: server_address(),
        to: client_address(),
        ecn: Ecn::NotEct,
        bytes,
    }
}

/// Returns true if a datagram from the server ends the client's connection.
fn ends_client(pair: &mut Pair, bytes: Vec<u8>) -> bool {
    pair.deliver(to_client(bytes));
    pair.drive();
    lost(&pair.client) == Some(&ConnectionError::Reset)
}

#[test]
fn client_of_a_restarted_server_is_reset_after_one_round_trip() {
    let mut pair = Pair::connected();
    pair.restart_server();
    let begun = pair.now;
    ping(&mut pair);
    assert!(pair.run_until(Duration::from_secs(1), |pair| lost(&pair.client).is_some()));
    assert_eq!(lost(&pair.client), Some(&ConnectionError::Reset));
    assert_eq!(pair.now - begun, RTT);
    let sent = pair.client.sent.len();
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.client.sent.len(), sent, "draining sends nothing");
    assert_clean(&pair.client, "client");
    assert_eq!(pair.server.endpoint.stats().resets_sent, 1);
}

#[test]
fn server_accepts_a_reset_of_its_client() {
    let mut pair = Pair::connected();
    restart_client(&mut pair);
    assert!(pair.run_until(Duration::from_secs(1), |pair| lost(&pair.server).is_some()));
    assert_eq!(lost(&pair.server), Some(&ConnectionError::Reset));
}

#[test]
fn reset_follows_a_client_to_its_new_address() {
    let mut pair = Pair::connected();
    pair.client.address.set_port(50_001);
    ping(&mut pair);
    pair.run_for(RTT * 5);
    assert_eq!(pair.server.connection().path().peer.port(), 50_001);
    restart_client(&mut pair);
    assert!(pair.run_until(Duration::from_secs(1), |pair| lost(&pair.server).is_some()));
    assert_eq!(lost(&pair.server), Some(&ConnectionError::Reset));
}

#[test]
fn restarted_server_with_other_keys_resets_no_connection() {
    let mut pair = Pair::connected();
    let server = Some(Arc::clone(&pair.server_config));
    pair.server.endpoint = Endpoint::new(EndpointConfig::from_seed([77; 32]), server, [78; 32]);
    ping(&mut pair);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(lost(&pair.client), None, "only the idle timeout ends it");
    pair.run_for(Duration::from_secs(60));
    assert_eq!(lost(&pair.client), Some(&ConnectionError::TimedOut));
}

/// After a change of the client's port, packets with the old ID may arrive after the one that retires it.
#[test]
fn late_packets_to_a_retired_id_get_no_reset() {
    let mut pair = Pair::connected();
    let ids: Vec<_> = pair.server.connection().ids().active().collect();
    let in_use = id_in_use(&mut pair);
    // The first ID is that of the handshake, with the sequence number 0.
    let (sequence, retired) = (2, ids[2]);
    assert_ne!(retired, in_use);
    pair.frame_to_server(&Frame::RetireConnectionId(RetireConnectionId { sequence }));
    let dropped = pair.server.endpoint.stats().datagrams_dropped;
    pair.deliver(short(50_001, &retired, 100));
    let stats = pair.server.endpoint.stats();
    assert_eq!(
        (stats.resets_sent, stats.datagrams_dropped),
        (0, dropped + 1)
    );
    pair.deliver(short(50_001, &[0x99; 8], 100));
    assert_eq!(pair.server.endpoint.stats().resets_sent, 1, "an unknown ID");
}

#[test]
fn reset_looks_like_a_short_packet_and_is_smaller_than_its_trigger() {
    for len in 43..1200 {
        let mut pair = Pair::new();
        let answers = answers(&mut pair, short(1, &[7; 8], len));
        let [reset] = &answers[..] else {
            panic!("{len}: {} answers", answers.len())
        };
        assert_eq!(reset.bytes[0] & 0xc0, 0x40, "{len}");
        assert!(reset.bytes.len() < len && reset.bytes.len() >= 21, "{len}");
        assert_eq!(
            reset.bytes.last_chunk(),
            Some(&token_of(&pair, &id(&[7; 8]))),
            "{len}"
        );
    }
}

#[test]
fn small_datagrams_cause_no_reset() {
    for len in 0..43 {
        let mut pair = Pair::new();
        assert!(
            answers(&mut pair, short(1, &[7; 8], len)).is_empty(),
            "{len} bytes"
        );
    }
}

#[test]
fn long_headers_with_unknown_ids_cause_no_reset() {
    let mut pair = Pair::new();
    for bits in [0xe0, 0xd0, 0xf0] {
        let mut datagram = FirstDatagram::new(1).initial();
        datagram.bytes[0] = bits;
        assert!(answers(&mut pair, datagram).is_empty(), "{bits:x}");
    }
}

#[test]
fn resets_to_one_network_and_to_all_are_limited() {
    let mut pair = Pair::new();
    let count = |pair: &mut Pair, from: u16| {
        (0..300)
            .filter(|_| !answers(pair, short(from, &[7; 8], 100)).is_empty())
            .count()
    };
    assert_eq!(count(&mut pair, 1), 200, "limit K18 for one network");
    assert_eq!(count(&mut pair, 2), 0, "the same network");
    assert_eq!(
        (1..20).map(|it| count(&mut pair, it << 8)).sum::<usize>(),
        2_000 - 200,
        "for all"
    );
    pair.now += Duration::from_secs(1);
    assert_eq!(count(&mut pair, 1), 200, "a second later");
}

#[test]
fn ports_of_other_services_get_no_reset() {
    let mut pair = Pair::new();
    let mut datagram = short(1, &[7; 8], 100);
    datagram.from.set_port(53);
    assert!(answers(&mut pair, datagram).is_empty());
}

#[test]
fn two_endpoints_without_state_stop_answering_each_other() {
    let mut ends = [Pair::new(), Pair::new()];
    let mut at = short(1, &[7; 8], 1200);
    let mut exchanged = 0;
    for round in 0..100 {
        let Some(answer) = answers(&mut ends[round % 2], at.clone()).pop() else {
            break;
        };
        exchanged += 1;
        at = Datagram {
            from: FirstDatagram::new(1).address,
            to: server_address(),
            ..answer
        };
    }
    assert!(exchanged < 20, "{exchanged} resets");
}

#[test]
fn any_datagram_that_ends_in_the_token_is_a_reset() {
    for first in [0x00, 0x40, 0x7f, 0x80, 0xc0, 0xe0, 0xff] {
        let mut pair = Pair::connected();
        let id = id_in_use(&mut pair);
        let mut bytes = vec![first; 60];
        bytes[44..].copy_from_slice(&token_of(&pair, &id));
        assert!(ends_client(&mut pair, bytes), "first byte {first:x}");
    }
}

#[test]
fn datagram_for_our_id_that_does_not_open_may_be_a_reset() {
    let mut pair = Pair::connected();
    let token = reset_token(&mut pair);
    let (_, ours) = pair.client.connection().forging_ids();
    let mut bytes = vec![0x40];
    bytes.extend_from_slice(&ours);
    bytes.resize(100, 0xab);
    bytes.extend_from_slice(&token);
    assert!(ends_client(&mut pair, bytes));
}

#[test]
fn datagrams_below_21_bytes_are_no_reset() {
    let mut pair = Pair::connected();
    let token = reset_token(&mut pair);
    for len in 16..21 {
        let mut bytes = vec![0x40; len];
        bytes[len - 16..].copy_from_slice(&token);
        assert!(!ends_client(&mut pair, bytes), "{len} bytes");
    }
}

#[test]
fn guessed_unused_and_foreign_tokens_reset_no_connection() {
    let mut pair = Pair::connected();
    let token = reset_token(&mut pair);
    let mut endings = vec![[0; 16], [0xff; 16]];
    // Tokens of IDs that the client has not used towards the server.
    let spare: Vec<_> = pair.server.connection().ids().active().collect();
    let used = id_in_use(&mut pair);
    endings.extend(
        spare
            .iter()
            .filter(|&&id| id != used)
            .map(|id| token_of(&pair, id)),
    );
    assert!(endings.len() > 2, "the server issued spare IDs");
    endings.extend((0..128).map(|bit| {
        let mut wrong = token;
        wrong[bit / 8] ^= 1 << (bit % 8);
        wrong
    }));
    for ending in endings {
        let bytes = [&[0x40; 30][..], &ending].concat();
        assert!(!ends_client(&mut pair, bytes), "{ending:02x?}");
    }
    let bytes = [&[0x40; 30][..], &token].concat();
    let foreign = Datagram {
        from: FirstDatagram::new(1).address,
        ..to_client(bytes)
    };
    pair.deliver(foreign);
    pair.drive();
    assert_eq!(
        lost(&pair.client),
        None,
        "the right token from a wrong address"
    );
}

#[test]
fn open_connection_causes_no_reset_for_any_datagram() {
    let mut pair = Pair::connected();
    let id = id_in_use(&mut pair);
    for len in 20..500 {
        let datagram = short(1, &id, len);
        assert!(
            answers(&mut pair, datagram).is_empty(),
            "attack A11, {len} bytes"
        );
        let mut datagram = short(1, &id, len);
        datagram.from = client_address();
        assert!(
            answers(&mut pair, datagram).is_empty(),
            "{len} bytes from the client's address"
        );
    }
    assert_eq!(pair.server.endpoint.stats().resets_sent, 0);
    ping(&mut pair);
    pair.run_for(RTT * 2);
    assert_eq!((lost(&pair.client), lost(&pair.server)), (None, None));
}

/// A host that is probed for a direct path, and is not the peer, resets.
#[test]
fn reset_from_a_probed_address_ends_nothing() {
    let config = crate::TransportConfig {
        max_paths: 4,
        max_candidates: 8,
        ..crate::testing::steady()
    };
    let mut server = crate::ServerConfig::new(crate::testing::identity::server_tls(&[b"test"]));
    server.transport = std::sync::Arc::new(config.clone());
    let mut pair = Pair::with(crate::testing::Setup {
        client: config,
        server,
        ..crate::testing::Setup::default()
    });
    pair.connect();
    let probed = std::net::SocketAddr::from(([198, 51, 100, 7], 4433));
    let own = std::net::SocketAddr::from(([203, 0, 113, 66], 5000));
    pair.link.filter = Some(Box::new(move |_, datagram| datagram.to != probed));
    let now = pair.now;
    for (end, address) in [(&mut pair.client, own), (&mut pair.server, probed)] {
        let offered = end.connection().candidates().offer(now, address);
        assert_eq!(offered, Ok(true));
        end.touch();
    }
    let has_probed = |pair: &mut Pair| pair.client.sent.iter().any(|it| it.to == probed);
    pair.ledger.exempt(own);
    assert!(pair.run_until(crate::testing::RTT * 4, has_probed));
    let probe = pair.client.sent.iter().find(|it| it.to == probed);
    let id = ConnectionId::new(&probe.expect("sent").bytes[1..9]).expect("an ID");
    let mut bytes = vec![0x40; 40];
    bytes.extend_from_slice(&token_of(&pair, &id));
    let to = client_address();
    pair.deliver(Datagram {
        from: probed,
        to,
        ecn: Ecn::NotEct,
        bytes,
    });
    pair.run_for(crate::testing::RTT * 4);
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    assert!(!pair.client.connection().is_closed());
}
