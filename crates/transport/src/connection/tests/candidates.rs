//! Tests of the search for direct paths. draft-seemann-quic-nat-traversal-02, in the variant of the field.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use courser_wire::{AddAddress, Frame, PathId, ReachOut, RemoveAddress};

use super::*;
use crate::config::ServerConfig;
use crate::multipath::PathPreference;
use crate::nat::CandidateError;
use crate::testing::forge::encode;
use crate::testing::identity::server_tls;
use crate::testing::{Setup, server_address, steady};

/// The address at which the server can be reached directly. The one of the handshake stands for a relay.
fn direct() -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 7], 4433))
}

/// An address that the client offers, from which nothing answers.
fn nobody() -> SocketAddr {
    SocketAddr::from(([203, 0, 113, 66], 5000))
}

fn config(max_candidates: u8) -> TransportConfig {
    TransportConfig {
        max_paths: 4,
        max_candidates,
        ..steady()
    }
}

fn with(client: TransportConfig, server: TransportConfig) -> Pair {
    let mut config_of_server = ServerConfig::new(server_tls(&[b"test"]));
    config_of_server.transport = Arc::new(server);
    let mut pair = Pair::with(Setup {
        client,
        server: config_of_server,
        ..Setup::default()
    });
    pair.server.other_addresses = vec![direct()];
    pair.server.reports_local = true;
    // Probes go to addresses from which nothing has arrived. They have a limit of their own.
    pair.ledger.exempt(nobody());
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to != nobody()));
    pair.connect();
    pair
}

fn pair() -> Pair {
    with(config(8), config(8))
}

fn offer(pair: &mut Pair, by_client: bool, address: SocketAddr) -> Result<bool, CandidateError> {
    let now = pair.now;
    let end = match by_client {
        true => &mut pair.client,
        false => &mut pair.server,
    };
    let offered = end.connection().candidates().offer(now, address);
    end.touch();
    offered
}

/// Offers the direct address of the server, and one of the client.
fn search(pair: &mut Pair) {
    assert_eq!(offer(pair, true, nobody()), Ok(true));
    assert_eq!(offer(pair, false, direct()), Ok(true));
}

/// Returns the datagrams that an end has sent to an address since `from`.
fn sent_to(sent: &[Datagram], address: SocketAddr) -> Vec<&Datagram> {
    sent.iter()
        .filter(|datagram| datagram.to == address)
        .collect()
}

#[test]
fn direct_path_is_opened_as_backup_and_preferred_when_it_is_no_slower() {
    let mut pair = pair();
    let begun = pair.now;
    search(&mut pair);
    let one = PathId::new(1);
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::PathOpened(one))
    }));
    assert!(pair.now - begun <= RTT * 4, "{:?}", pair.now - begun);
    pair.run_for(RTT * 4);
    let all = pair.client.connection().candidates().direct();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].address, all[0].path), (direct(), Some(one)));
    assert!(all[0].is_preferred, "its round trip is the same");
    for end in [&mut pair.client, &mut pair.server] {
        let paths = end.connection().several_paths().list();
        let of = |path: usize| (paths[path].own_status, paths[path].peer_status);
        let statuses = [of(0), of(1)];
        let is_preferred = statuses
            .iter()
            .all(|it| *it != (PathPreference::Available, PathPreference::Backup))
            || statuses[0].0 != statuses[1].0
            || statuses[0].1 != statuses[1].1;
        assert!(is_preferred, "{statuses:?}");
    }
    let before = pair.client.sent.len();
    pair.upload(500_000);
    let sent = &pair.client.sent[before..];
    let over_relay: usize = sent_to(sent, server_address())
        .iter()
        .map(|it| it.bytes.len())
        .sum();
    assert!(over_relay < 20_000, "{over_relay} bytes over the relay");
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

#[test]
fn probes_are_small_and_carry_connection_ids_of_no_other_path() {
    let mut pair = pair();
    search(&mut pair);
    pair.run_for(Duration::from_secs(8));
    let mut ways = HashMap::new();
    for datagram in pair.client.sent.iter().chain(&pair.server.sent) {
        let packet = courser_wire::packet::decode(&datagram.bytes, 0, 8).expect("a packet");
        let way = (datagram.from, datagram.to);
        let first = *ways.entry(packet.destination).or_insert(way);
        assert_eq!(first, way, "RFC 9000 §9.5");
    }
    let first = sent_to(&pair.client.sent, direct())[0];
    assert!(first.bytes.len() <= 100, "{}", first.bytes.len());
    let to_nobody = sent_to(&pair.server.sent, nobody());
    assert_eq!(to_nobody.len(), 9);
    assert!(to_nobody.iter().all(|it| it.bytes.len() <= 100));
    let stats = pair.server.connection().stats();
    assert_eq!(
        (stats.packets_lost, stats.ptos),
        (0, 0),
        "silence changes nothing else"
    );
}

#[test]
fn ends_that_have_not_agreed_find_no_candidates() {
    let one_path = TransportConfig {
        max_paths: 1,
        max_candidates: 0,
        ..steady()
    };
    for (client, server) in [
        (config(8), config(0)),
        (config(0), config(8)),
        (config(8), one_path.clone()),
        (one_path, config(8)),
    ] {
        let mut pair = with(client, server);
        let refused = Err(CandidateError::NotNegotiated);
        assert_eq!(offer(&mut pair, true, nobody()), refused);
        assert_eq!(offer(&mut pair, false, direct()), refused);
        pair.upload(10_000);
        assert_eq!((pair.client_error(), pair.server_error()), (None, None));
        let frame = Frame::AddAddress(AddAddress {
            sequence: 0,
            address: direct(),
        });
        pair.frame_to_client(&frame);
        assert_eq!(pair.client_error(), Some(0x0a), "not negotiated");
    }
}

#[test]
fn frames_at_the_wrong_end_or_in_other_packets_end_the_connection() {
    let add = Frame::AddAddress(AddAddress {
        sequence: 0,
        address: direct(),
    });
    let remove = Frame::RemoveAddress(RemoveAddress { sequence: 0 });
    let reach = Frame::ReachOut(ReachOut {
        round: 1,
        address: nobody(),
    });
    for frame in [&add, &remove] {
        let mut pair = pair();
        pair.frame_to_client(frame);
        assert_eq!(pair.client_error(), None, "{frame:?}");
        pair.frame_to_server(frame);
        assert_eq!(pair.server_error(), Some(0x0a), "{frame:?}");
    }
    let mut pair = pair();
    pair.frame_to_server(&reach);
    assert_eq!(pair.server_error(), None);
    pair.frame_to_client(&reach);
    assert_eq!(pair.client_error(), Some(0x0a));
    for frame in [&add, &remove, &reach] {
        let mut pair = with_handshake_keys();
        pair.forge_to_server(SpaceId::Handshake, &encode(frame));
        assert_eq!(pair.server_error(), Some(0x0a), "{frame:?}");
    }
}

/// Attack A216: a client that asks for rounds without end.
#[test]
fn flood_of_rounds_is_refused() {
    let mut pair = pair();
    for round in 1..100_000 {
        pair.frame_to_server(&Frame::ReachOut(ReachOut {
            round,
            address: nobody(),
        }));
        if pair.server_error().is_some() {
            break;
        }
    }
    assert_eq!(pair.server_error(), Some(0x0a), "limit K17");
    assert!(sent_to(&pair.server.sent, nobody()).len() <= 72);
}

#[test]
fn challenge_from_elsewhere_is_answered_there_and_moves_nobody() {
    let mut pair = pair();
    let before = pair.server.connection().path();
    let payload = encode(&Frame::PathChallenge(courser_wire::PathChallenge {
        data: [7; 8],
    }));
    let bytes = crate::testing::forge::forge(&mut pair.client, SpaceId::Application, &payload);
    let from = SocketAddr::from(([203, 0, 113, 9], 6000));
    pair.deliver(Datagram {
        from,
        to: server_address(),
        ecn: courser_base::Ecn::NotEct,
        bytes,
    });
    pair.run_for(RTT * 8);
    let answers = sent_to(&pair.server.sent, from);
    assert_eq!(answers.len(), 1);
    assert!(answers[0].bytes.len() <= 100);
    assert_eq!(pair.server.connection().path(), before);
}

#[test]
fn only_offered_addresses_are_sent_to_the_peer() {
    let mut config_of_server = ServerConfig::new(server_tls(&[b"test"]));
    config_of_server.transport = Arc::new(config(8));
    let (setup, eye) = Setup {
        client: config(8),
        server: config_of_server,
        ..Setup::default()
    }
    .with_eye();
    let mut pair = Pair::with(setup);
    pair.ledger.exempt(nobody());
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to != nobody()));
    pair.connect();
    pair.run_for(RTT * 8);
    let named = |pair: &Pair| {
        let (client, server) = (eye.client_sent(pair), eye.server_sent(pair));
        let all = client
            .iter()
            .chain(&server)
            .flat_map(|packet| packet.frames());
        let named = all.filter_map(|frame| match frame {
            Frame::AddAddress(frame) => Some(frame.address),
            Frame::ReachOut(frame) => Some(frame.address),
            _ => None,
        });
        named.collect::<Vec<_>>()
    };
    assert_eq!(named(&pair), []);
    search(&mut pair);
    pair.run_for(RTT * 8);
    assert_eq!(named(&pair), [nobody(), direct()]);
}

#[test]
fn lost_frames_of_candidates_are_repeated() {
    let mut pair = pair();
    pair.link.loss = 3;
    search(&mut pair);
    assert!(pair.run_until(Duration::from_secs(60), |pair| {
        !pair.client.connection().candidates().direct().is_empty()
    }));
    assert!(pair.server.connection().candidates().stats().rounds > 0);
}
