//! Tests peers that move, and attackers that forge a move. RFC 9000 §8.2, §9, attacks A53 to A56.

use std::net::SocketAddr;

use courser_base::Ecn;
use courser_wire::ConnectionId;
use courser_wire::frame::{Frame, PathChallenge, PathResponse};
use courser_wire::packet::{self, PacketKind};

use super::handshake::has_kind;
use super::*;
use crate::testing::eye::{Eye, Seen};
use crate::testing::forge::{encode, forge};
use crate::testing::forgery::Forgery;
use crate::testing::link::Datagram;
use crate::testing::traffic::Transfer;
use crate::testing::{Setup, client_address, server_address};

mod counted;
mod probing;
mod rebinding;
mod spoofing;
mod without_spare_ids;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// Returns the same host with another port, as after a NAT has lost its mapping.
fn other_port() -> SocketAddr {
    address("10.0.0.1:50001")
}

/// Returns an address in another network.
fn other_host() -> SocketAddr {
    address("192.168.7.7:40000")
}

/// Returns the address of an uninvolved host.
fn victim() -> SocketAddr {
    address("203.0.113.9:9")
}

/// Moves the client to `to`; datagrams to its old address are lost.
fn rebind(pair: &mut Pair, to: SocketAddr) {
    pair.client.address = to;
    pair.link.filter = Some(Box::new(move |_, datagram| {
        datagram.to == to || datagram.to == server_address()
    }));
}

fn ping(pair: &mut Pair) {
    pair.client.connection().pings().request();
    pair.client.touch();
}

fn server_peer(pair: &mut Pair) -> SocketAddr {
    pair.server.connection().path().peer
}

fn is_validated(pair: &mut Pair) -> bool {
    pair.server.connection().parts.paths.active().is_validated()
}

fn moves(pair: &Pair) -> Vec<SocketAddr> {
    let moved = |event: &Event| match event {
        Event::PathChanged { peer } => Some(*peer),
        _ => None,
    };
    pair.server.events.iter().filter_map(moved).collect()
}

/// Returns the destinations and datagram sizes of the server's packets with such a frame.
fn sent_with(
    pair: &Pair,
    eye: &Eye,
    wanted: impl Fn(&Frame<'_>) -> bool,
) -> Vec<(SocketAddr, usize)> {
    let has = |seen: &Seen| seen.has(&wanted);
    let to = |seen: &Seen| (pair.server.sent[seen.datagram].to, seen.datagram_len);
    eye.server_sent(pair)
        .iter()
        .filter(|seen| has(seen))
        .map(to)
        .collect()
}

fn is_challenge(frame: &Frame<'_>) -> bool {
    matches!(frame, Frame::PathChallenge(_))
}

/// Delivers a client's packet from another address than it was sent from.
fn from_elsewhere(pair: &mut Pair, from: SocketAddr, payload: &[u8]) {
    let bytes = forge(&mut pair.client, SpaceId::Application, payload);
    pair.deliver(Datagram {
        from,
        to: server_address(),
        ecn: Ecn::NotEct,
        bytes,
    });
    pair.drive();
}

#[test]
fn rebound_client_is_followed_and_its_new_address_validated() {
    for to in [other_port(), other_host()] {
        let (mut pair, eye) = Pair::watched_and_connected();
        rebind(&mut pair, to);
        ping(&mut pair);
        pair.run_for(RTT / 2);
        assert_eq!(server_peer(&mut pair), to);
        assert!(!is_validated(&mut pair), "{to}");
        let proven = pair.server.connection().validated_path().peer;
        assert_eq!(proven, client_address(), "the address for the application");
        pair.run_for(RTT * 2);
        assert!(is_validated(&mut pair), "{to}");
        assert_eq!(pair.server.connection().validated_path().peer, to);
        assert_eq!(moves(&pair), [to]);
        let challenged = sent_with(&pair, &eye, is_challenge);
        assert!(challenged.iter().any(|(at, _)| *at == to), "{challenged:?}");
        let old = challenged.iter().any(|(at, _)| *at == client_address());
        assert!(
            old,
            "the old address is challenged too, RFC 9000 §9.3.3: {challenged:?}"
        );
        pair.run_for(Duration::from_secs(5));
        assert_eq!((server_peer(&mut pair), moves(&pair).len()), (to, 1));
        pair.download(200_000);
        pair.upload(200_000);
    }
}

#[test]
fn small_challenge_is_followed_by_a_full_datagram() {
    // RFC 9000 §8.2.1, §8.2.3: three times the length of a PING is less than 1200 bytes.
    let (mut pair, eye) = Pair::watched_and_connected();
    rebind(&mut pair, other_port());
    ping(&mut pair);
    pair.run_for(Duration::from_secs(2));
    let challenged = sent_with(&pair, &eye, is_challenge);
    let sizes: Vec<_> = challenged
        .iter()
        .filter(|(to, _)| *to == other_port())
        .map(|(_, len)| *len)
        .collect();
    assert_eq!(sizes.len(), 2, "{challenged:?}");
    assert!(sizes[0] < 1200 && sizes[1] >= 1200, "{sizes:?}");
    let old = challenged
        .iter()
        .find(|(to, _)| *to == client_address())
        .expect("challenged too");
    assert!(old.1 >= 1200, "the old address is validated");
}

#[test]
fn challenges_hold_fresh_data() {
    let (mut pair, eye) = Pair::watched_and_connected();
    pair.client.address = other_port();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
    ping(&mut pair);
    pair.run_for(Duration::from_secs(2));
    let mut seen = Vec::new();
    for packet in eye.server_sent(&pair) {
        let mut in_packet = 0;
        for frame in packet.frames() {
            if let Frame::PathChallenge(PathChallenge { data }) = frame {
                assert!(!seen.contains(&data), "{data:x?}");
                seen.push(data);
                in_packet += 1;
            }
        }
        assert!(in_packet <= 1);
    }
    assert!(
        seen.len() >= 4,
        "challenged again on both paths: {}",
        seen.len()
    );
}

#[test]
fn congestion_state_survives_a_new_port_but_not_a_new_host() {
    for (to, survives) in [(other_port(), true), (other_host(), false)] {
        let mut pair = Pair::connected();
        pair.download(1_000_000);
        let before = pair.server.connection().stats().path;
        rebind(&mut pair, to);
        ping(&mut pair);
        pair.run_for(RTT / 2);
        let after = pair.server.connection().stats().path;
        assert_eq!(
            after.congestion_window == before.congestion_window,
            survives,
            "{to}"
        );
        assert_eq!(after.min_rtt == before.min_rtt, survives, "{to}");
    }
}

#[test]
fn transfers_continue_through_rebinding() {
    for to in [other_port(), other_host()] {
        for down in [true, false] {
            let mut pair = Pair::connected();
            pair.link.rate = Some(2_000_000);
            let mut transfer = match down {
                true => Transfer::down(&mut pair, 1_000_000),
                false => Transfer::up(&mut pair, 1_000_000),
            };
            while transfer.received() < 300_000 {
                pair.step();
                assert!(!transfer.step(&mut pair));
            }
            rebind(&mut pair, to);
            if down {
                // A client that only receives must send something: its acknowledgements suffice.
                ping(&mut pair);
            }
            let time = transfer.finish(&mut pair, Duration::from_secs(20));
            assert!(time.is_some(), "to {to}, down {down}");
            assert!(is_validated(&mut pair));
        }
    }
}

#[test]
fn new_address_is_challenged_although_lost_packets_fill_the_window() {
    let mut pair = Pair::connected();
    rebind(&mut pair, other_port());
    let streams = pair.server.connection().streams();
    let id = streams.open(Direction::Unidirectional).expect("a stream");
    streams.write(id, &[0; 100_000]).expect("room");
    pair.server.touch();
    pair.run_for(RTT);
    let path = pair.server.connection().packets.recovery.path();
    assert!(path.congestion_room() < u64::from(path.mtu()), "no room");
    ping(&mut pair);
    pair.run_for(RTT * 3 / 2 + Duration::from_millis(2));
    assert_eq!(pair.server.connection().stats().ptos, 0);
    assert!(is_validated(&mut pair));
}

#[test]
fn frequent_rebinding_is_survived() {
    // Fault F20, and attack A54 when it is every packet.
    for every in [1, 7, 40] {
        let mut pair = Pair::connected();
        pair.link.rate = Some(2_000_000);
        let mut transfer = Transfer::down(&mut pair, 300_000);
        let (mut steps, mut port) = (0, 50_000);
        while !transfer.step(&mut pair) {
            steps += 1;
            if steps % every == 0 {
                port = 50_000 + (port + 1) % 10_000;
                pair.client.address.set_port(port);
            }
            pair.step();
            assert!(pair.server.connection().parts.paths.len() <= 4, "limit K07");
            assert!(
                steps < 200_000,
                "every {every}: {} bytes",
                transfer.received()
            );
        }
    }
}

#[test]
fn late_packet_from_the_old_address_does_not_move_the_path() {
    let mut pair = Pair::connected();
    let late = forge(&mut pair.client, SpaceId::Application, &[1]);
    rebind(&mut pair, other_port());
    ping(&mut pair);
    pair.run_for(RTT * 3);
    let to = server_address();
    pair.deliver(Datagram {
        from: client_address(),
        to,
        ecn: Ecn::NotEct,
        bytes: late,
    });
    pair.drive();
    assert_eq!(server_peer(&mut pair), other_port(), "RFC 9000 §9.3");
}

#[test]
fn probing_packet_is_answered_on_its_path_and_does_not_move_it() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let challenge = encode(&Frame::PathChallenge(PathChallenge { data: [5; 8] }));
    let padded = [&challenge[..], &[0; 1150]].concat();
    from_elsewhere(&mut pair, other_host(), &padded);
    let answered =
        |frame: &Frame<'_>| matches!(frame, Frame::PathResponse(it) if it.data == [5; 8]);
    assert_eq!(sent_with(&pair, &eye, answered), [(other_host(), 1200)]);
    assert_eq!(server_peer(&mut pair), client_address());
    pair.run_for(Duration::from_secs(3));
    assert_eq!(
        sent_with(&pair, &eye, answered).len(),
        1,
        "one challenge, one response"
    );
    assert!(moves(&pair).is_empty());
}

#[test]
fn challenge_on_the_path_in_use_is_answered_in_a_full_datagram() {
    let (mut pair, eye) = Pair::watched_and_connected();
    for data in [[1; 8], [2; 8]] {
        pair.frame_to_server(&Frame::PathChallenge(PathChallenge { data }));
        let is_answer =
            |frame: &Frame<'_>| matches!(frame, Frame::PathResponse(it) if it.data == data);
        let answers = sent_with(&pair, &eye, is_answer);
        assert_eq!(answers, [(client_address(), 1200)]);
    }
}

#[test]
fn peer_that_uses_a_new_id_on_its_new_path_is_addressed_by_a_new_one() {
    // RFC 9000 §9.5: observers must not be able to link the two.
    let (mut pair, eye) = Pair::watched_and_connected();
    let before = pair.server.connection().forging_ids().0;
    let used = pair.client.connection().forging_ids().0;
    let spare: Vec<_> = pair
        .server
        .connection()
        .ids()
        .active()
        .filter(|id| *id != used)
        .collect();
    let forgery = Forgery::of(&[1]).destination(&spare[0]);
    let bytes = forgery.seal(&mut pair.client, SpaceId::Application);
    let from = pair.server.sent.len();
    pair.deliver(Datagram {
        from: other_host(),
        to: server_address(),
        ecn: Ecn::NotEct,
        bytes,
    });
    pair.drive();
    assert_ne!(pair.server.connection().forging_ids().0, before);
    for datagram in pair.server.sent[from..]
        .iter()
        .filter(|it| it.to == other_host())
    {
        let packet = packet::decode(&datagram.bytes, 0, 8).expect("a packet");
        assert_eq!(packet.kind, PacketKind::OneRtt);
        assert_ne!(packet.destination, before);
    }
    let retired = eye.server_sent(&pair).iter().any(|seen| {
        seen.has(|frame| matches!(frame, Frame::RetireConnectionId(it) if it.sequence == 0))
    });
    assert!(retired);
}

/// Returns destination and connection ID of the server's 1-RTT packets from datagram `from` on.
fn destinations(pair: &Pair, from: usize) -> Vec<(SocketAddr, ConnectionId)> {
    let sent = pair.server.sent[from..].iter();
    sent.map(|datagram| {
        let packet = packet::decode(&datagram.bytes, 0, 8).expect("a packet");
        (datagram.to, packet.destination)
    })
    .collect()
}

/// Returns an ID of the server that the client has not used.
fn fresh_id(pair: &mut Pair) -> ConnectionId {
    let used = pair.client.connection().forging_ids().0;
    let mut ids = pair.server.connection().ids().active();
    ids.find(|id| *id != used).expect("a spare one")
}

/// Sends a packet of the client from `from` to the server's ID `to`.
fn from_elsewhere_to(pair: &mut Pair, from: SocketAddr, to: &ConnectionId, payload: &[u8]) {
    let forgery = Forgery::of(payload).destination(to);
    let bytes = forgery.seal(&mut pair.client, SpaceId::Application);
    pair.deliver(Datagram {
        from,
        to: server_address(),
        ecn: Ecn::NotEct,
        bytes,
    });
    pair.drive();
}

fn padded_challenge(data: [u8; 8]) -> Vec<u8> {
    let challenge = encode(&Frame::PathChallenge(PathChallenge { data }));
    [&challenge[..], &[0; 1150]].concat()
}

/// Observers must not link two paths by their IDs (RFC 9000 §9.5, attack A105).
#[test]
fn probes_on_two_paths_carry_different_ids() {
    let mut pair = Pair::connected();
    pair.run_for(RTT);
    let in_use = pair.server.connection().ids().destination();
    let fresh = fresh_id(&mut pair);
    let from = pair.server.sent.len();
    for (to, data) in [(other_host(), 1), (victim(), 2), (other_host(), 3)] {
        from_elsewhere_to(&mut pair, to, &fresh, &padded_challenge([data; 8]));
        pair.run_for(RTT * 2);
    }
    let sent = destinations(&pair, from);
    let id_at = |at: SocketAddr| {
        let mut ids: Vec<_> = sent.iter().filter(|(to, _)| *to == at).collect();
        ids.dedup();
        let [(_, id)] = ids[..] else {
            panic!("one ID for {at}: {ids:?}")
        };
        *id
    };
    let (one, other) = (id_at(other_host()), id_at(victim()));
    assert!(one != other && one != in_use && other != in_use);
    // The client moves to the address that it probed: the ID of the path stays.
    let from = pair.server.sent.len();
    from_elsewhere_to(&mut pair, other_host(), &fresh, &[1, 1]);
    assert_eq!(server_peer(&mut pair), other_host());
    assert_eq!(pair.server.connection().ids().destination(), one);
    let sent = destinations(&pair, from);
    assert!(sent.iter().any(|(to, _)| *to == client_address()), "asked");
    for (to, id) in sent {
        assert_eq!(id == one, to == other_host(), "{to}");
        assert!(id != in_use, "a retired ID");
    }
}

#[test]
fn old_path_is_challenged_with_another_id_than_the_new_one() {
    let mut pair = Pair::connected();
    pair.run_for(RTT);
    let fresh = fresh_id(&mut pair);
    let from = pair.server.sent.len();
    from_elsewhere_to(&mut pair, other_host(), &fresh, &[1]);
    pair.run_for(RTT);
    let sent = destinations(&pair, from);
    let ids = |at: SocketAddr| sent.iter().filter(move |(to, _)| *to == at);
    assert!(ids(client_address()).count() > 0 && ids(other_host()).count() > 0);
    for (_, old) in ids(client_address()) {
        assert!(ids(other_host()).all(|(_, new)| new != old));
    }
}

#[test]
fn rebound_client_uses_no_spare_id() {
    let mut pair = Pair::connected();
    pair.run_for(RTT);
    let before = pair.server.connection().ids().destination();
    let spare = pair.server.connection().ids_mut().peer().spare();
    for to in [other_port(), other_host(), client_address()] {
        rebind(&mut pair, to);
        ping(&mut pair);
        pair.run_for(Duration::from_secs(2));
        assert_eq!(server_peer(&mut pair), to);
        let ids = pair.server.connection().ids_mut().peer();
        assert_eq!((*ids.current(), ids.spare()), (before, spare), "{to}");
    }
}

#[test]
fn ids_of_closed_paths_are_replaced() {
    let mut pair = Pair::connected();
    pair.run_for(RTT);
    let spare = pair.server.connection().ids_mut().peer().spare();
    let fresh = fresh_id(&mut pair);
    for port in 0..20 {
        let mut from = other_host();
        from.set_port(1000 + port);
        from_elsewhere_to(&mut pair, from, &fresh, &padded_challenge([1; 8]));
        pair.run_for(Duration::from_secs(1));
        let connection = pair.server.connection();
        assert!(connection.ids_mut().peer().open_retirements() <= 8);
    }
    let connection = pair.server.connection();
    assert_eq!((connection.parts.paths.len(), spare), (4, 3));
    let left = connection.ids_mut().peer().spare();
    assert!((1..spare).contains(&left), "{left} spare IDs");
    assert_eq!(pair.server_error(), None);
}

#[test]
fn outage_after_a_move_is_survived() {
    // Neither address answers for longer than a validation takes; then the client returns.
    for to in [other_port(), other_host()] {
        let mut pair = Pair::connected();
        pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
        pair.client.address = to;
        ping(&mut pair);
        pair.run_for(Duration::from_secs(1));
        pair.link.loss = 1000;
        pair.run_for(Duration::from_secs(8));
        assert!(!pair.server.connection().is_closed(), "{to}");
        pair.link.loss = 0;
        pair.client.address = other_host();
        pair.link.filter = None;
        ping(&mut pair);
        pair.run_for(Duration::from_secs(3));
        assert_eq!(server_peer(&mut pair), other_host());
        assert!(is_validated(&mut pair));
        pair.download(100_000);
    }
}

/// The server has completed the handshake and has no Handshake keys any more. Its answers are lost, and then
/// the NAT mapping of the client, which has only probes of the handshake to send.
#[test]
fn client_that_only_probes_the_handshake_is_followed_to_its_new_address() {
    for to in [other_port(), other_host()] {
        // Without IDs of its own it has no NEW_CONNECTION_ID frame to repeat.
        let mut pair = Pair::with(Setup {
            client_cid_len: 0,
            ..Setup::default()
        });
        pair.link.filter = Some(Box::new(|_, datagram| {
            datagram.from == client_address() || !has_kind(datagram, PacketKind::OneRtt)
        }));
        pair.start();
        assert!(pair.run_until(RTT * 3, |pair| pair.server.has(&Event::Confirmed)));
        assert!(!pair.client.has(&Event::Confirmed));
        rebind(&mut pair, to);
        let is_found = pair.run_until(Duration::from_secs(3), |pair| {
            pair.client.has(&Event::Confirmed)
        });
        assert!(is_found, "{to}: {:?}", pair.client.events);
        assert_eq!(server_peer(&mut pair), to);
        pair.run_for(RTT * 4);
        assert!(is_validated(&mut pair), "{to}");
        pair.download(100_000);
    }
}

#[test]
fn ecn_is_tested_again_on_a_new_path() {
    let mut pair = Pair::with(Setup {
        seed: 9,
        ..Setup::default()
    });
    pair.connect();
    pair.download(200_000);
    rebind(&mut pair, other_host());
    // The new path clears ECN marks.
    let to = other_host();
    pair.link.filter = Some(Box::new(move |_, datagram| {
        datagram.ecn = Ecn::NotEct;
        datagram.to == to || datagram.to == server_address()
    }));
    ping(&mut pair);
    pair.run_for(RTT * 4);
    pair.download(200_000);
    let last = pair.server.sent.iter().rev().take(10);
    assert!(
        last.into_iter().all(|datagram| datagram.ecn == Ecn::NotEct),
        "ECN validation has failed"
    );
}

#[test]
fn client_answers_challenges_of_the_server() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let data = [6; 8];
    pair.frame_to_client(&Frame::PathChallenge(PathChallenge { data }));
    let sent = eye.client_sent(&pair);
    let is_answer = |frame: &Frame<'_>| matches!(frame, Frame::PathResponse(it) if it.data == data);
    let answers: Vec<_> = sent.iter().filter(|seen| seen.has(is_answer)).collect();
    assert_eq!(answers.len(), 1);
    assert!(answers[0].datagram_len >= 1200);
}
