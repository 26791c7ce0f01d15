//! Key updates and the limits of keys, between two ends. RFC 9001 §5.5, §5.7, §6.

use courser_wire::frame::Frame;
use courser_wire::packet::PacketKind;

use super::frames::raw;
use super::*;
use crate::config::TransportConfig;
use crate::testing::Setup;
use crate::testing::eye::{Eye, Seen};
use crate::testing::forgery::Forgery;

mod rapid;

fn ping() -> Forgery {
    Forgery::of(&[0x01])
}

fn update_client(pair: &mut Pair) {
    let now = pair.now;
    pair.client
        .connection()
        .initiate_key_update(now)
        .expect("allowed");
    pair.client.touch();
}

fn update_server(pair: &mut Pair) {
    let now = pair.now;
    pair.server
        .connection()
        .initiate_key_update(now)
        .expect("allowed");
    pair.server.touch();
}

fn generations(sent: &[Seen]) -> Vec<usize> {
    let one_rtt = sent
        .iter()
        .filter(|packet| packet.kind == PacketKind::OneRtt);
    one_rtt.map(|packet| packet.generation).collect()
}

fn is_ascending(generations: &[usize]) -> bool {
    generations.windows(2).all(|pair| pair[0] <= pair[1])
}

fn last_generations(eye: &Eye, pair: &Pair) -> (usize, usize) {
    let last = |sent: &[Seen]| *generations(sent).last().expect("1-RTT packets");
    (last(&eye.client_sent(pair)), last(&eye.server_sent(pair)))
}

/// Returns the number of the client's next packet.
fn next_number(pair: &mut Pair) -> u64 {
    pair.client
        .connection()
        .packets
        .recovery
        .first_unused_number()
}

#[test]
fn update_of_a_client_is_followed_by_the_server() {
    let (mut pair, eye) = Pair::watched_and_connected();
    assert_eq!(last_generations(&eye, &pair), (0, 0));
    update_client(&mut pair);
    pair.run_for(RTT * 3);
    assert_eq!(last_generations(&eye, &pair), (1, 1));
    assert_eq!(pair.client.connection().stats().key_updates, 1);
    assert_eq!(pair.server.connection().stats().key_updates, 1);
}

#[test]
fn update_of_a_server_is_followed_by_the_client() {
    let (mut pair, eye) = Pair::watched_and_connected();
    update_server(&mut pair);
    pair.run_for(RTT * 3);
    assert_eq!(last_generations(&eye, &pair), (1, 1));
    assert_eq!(pair.client.connection().stats().key_updates, 1);
}

#[test]
fn updates_of_both_at_once_are_one_update() {
    let (mut pair, eye) = Pair::watched_and_connected();
    update_client(&mut pair);
    update_server(&mut pair);
    pair.run_for(RTT * 3);
    assert_eq!(last_generations(&eye, &pair), (1, 1));
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

#[test]
fn no_update_before_the_handshake_is_confirmed() {
    let mut pair = Pair::new();
    pair.start();
    let now = pair.now;
    let blocked = Err(KeyUpdateBlocked::NotConfirmed);
    assert_eq!(pair.client.connection().initiate_key_update(now), blocked);
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    assert_eq!(pair.client.connection().initiate_key_update(now), blocked);
}

#[test]
fn no_second_update_before_the_first_is_acknowledged() {
    let mut pair = Pair::connected();
    update_client(&mut pair);
    let now = pair.now;
    let blocked = Err(KeyUpdateBlocked::PreviousUnacknowledged);
    assert_eq!(pair.client.connection().initiate_key_update(now), blocked);
    pair.run_for(RTT / 2);
    assert_eq!(pair.client.connection().initiate_key_update(now), blocked);
    pair.run_for(Duration::from_secs(1));
    update_client(&mut pair);
}

/// RFC 9001 §6.5. A peer that counts hasty updates would end the connection.
#[test]
fn no_update_within_three_probe_timeouts_of_the_last() {
    let mut pair = Pair::connected();
    update_client(&mut pair);
    let acknowledged = pair.run_until(Duration::from_secs(1), |pair| {
        let now = pair.now;
        let again = pair.client.connection().initiate_key_update(now);
        again == Err(KeyUpdateBlocked::TooSoon)
    });
    assert!(acknowledged, "the first update is acknowledged");
    let pto = pair.client.connection().packets.recovery.pto();
    pair.run_for(pto * 2);
    let now = pair.now;
    let blocked = Err(KeyUpdateBlocked::TooSoon);
    assert_eq!(pair.client.connection().initiate_key_update(now), blocked);
    // The server has followed the client, and waits as well.
    assert!(pair.server.connection().initiate_key_update(now).is_err());
    pair.run_for(pto * 2);
    update_client(&mut pair);
}

/// A program that requests updates as often as it can does not exceed a limit of its peer.
#[test]
fn endless_requests_for_updates_leave_the_connection_open() {
    let mut pair = Pair::connected();
    let id = pair.client.connection().streams();
    let id = id.open(Direction::Unidirectional).expect("room");
    for _ in 0..2000 {
        let now = pair.now;
        let _ = pair.client.connection().initiate_key_update(now);
        let streams = pair.client.connection().streams();
        streams.write(id, b"x").expect("room");
        pair.client.touch();
        pair.run_for(Duration::from_millis(2));
    }
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    let updates = pair.client.connection().stats().key_updates;
    assert!((4..200).contains(&updates), "{updates}");
}

#[test]
fn key_generations_only_rise_over_many_updates_and_losses() {
    let (mut pair, eye) = Pair::watched_and_connected();
    pair.link.loss = 100;
    pair.link.reorder = 200;
    for round in 0..5 {
        // An end that only acknowledges is never acknowledged, so it must not update.
        pair.server.connection().pings().request();
        pair.server.touch();
        pair.run_for(Duration::from_secs(3));
        if round % 2 == 0 {
            update_client(&mut pair);
        } else {
            update_server(&mut pair);
        }
        let id = pair
            .client
            .connection()
            .streams()
            .open(Direction::Unidirectional)
            .expect("room");
        pair.client
            .connection()
            .streams()
            .write(id, &[7; 20_000])
            .expect("room");
        pair.client.touch();
        pair.run_for(Duration::from_secs(3));
        assert_eq!(
            (pair.client_error(), pair.server_error()),
            (None, None),
            "round {round}"
        );
    }
    assert!(is_ascending(&generations(&eye.client_sent(&pair))));
    assert!(is_ascending(&generations(&eye.server_sent(&pair))));
    assert_eq!(last_generations(&eye, &pair), (5, 5));
}

#[test]
fn keys_are_updated_automatically_when_due() {
    let client = TransportConfig {
        key_update_after: 50,
        ..TransportConfig::default()
    };
    let (setup, eye) = Setup {
        client,
        ..Setup::default()
    }
    .with_eye();
    let mut pair = Pair::with(setup);
    pair.connect();
    for _ in 0..150 {
        pair.client.connection().pings().request();
        pair.client.touch();
        pair.run_for(RTT * 2);
    }
    let generations = generations(&eye.client_sent(&pair));
    let first = generations
        .iter()
        .filter(|&&generation| generation == 0)
        .count();
    assert!(
        (50..=52).contains(&first),
        "{first} packets under the first key"
    );
    assert!(generations.contains(&2));
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

#[test]
fn next_automatic_update_waits_until_old_keys_are_erased() {
    let client = TransportConfig {
        key_update_after: 1,
        ..TransportConfig::default()
    };
    let mut pair = Pair::with(Setup {
        client,
        ..Setup::default()
    });
    pair.connect();
    let begun = pair.now;
    let before = pair.client.connection().stats().key_updates;
    for _ in 0..200 {
        pair.client.connection().pings().request();
        pair.client.touch();
        pair.run_for(Duration::from_millis(5));
    }
    let updates = pair.client.connection().stats().key_updates - before;
    let least = pair.client.connection().rtt() * 3;
    let most = (pair.now - begun).as_nanos() / least.as_nanos();
    assert!(
        updates >= 2 && u128::from(updates) <= most,
        "{updates} updates, at most {most}"
    );
}

#[test]
fn second_update_without_an_acknowledgement_of_the_first_is_an_error() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let number = next_number(&mut pair);
    let first = eye.forge_client(&mut pair, 1, &ping().number(number));
    let second = eye.forge_client(&mut pair, 2, &ping().number(number + 1));
    // Both are in one batch: the server cannot have answered in between.
    assert_eq!(first.len(), second.len());
    pair.send_batch_to_server(&[first, second]);
    assert_eq!(pair.server_error(), Some(0x0e));
    // The honest client never updated and cannot read the answer.
    assert!(pair.server.connection().is_closed());
}

/// RFC 9001 §6.4: old keys were used above a number of the new ones. Old keys are not tried on a
/// number above one of the new keys (§5.5), so this shows when the lower number arrives later.
#[test]
fn newer_keys_on_an_older_packet_are_an_error() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let number = next_number(&mut pair);
    let old = eye.forge_client(&mut pair, 0, &ping().number(number + 5));
    pair.send_to_server(old);
    let new = eye.forge_client(&mut pair, 1, &ping().number(number));
    pair.send_to_server(new);
    assert_eq!(pair.server_error(), Some(0x0e));
}

#[test]
fn older_keys_on_a_newer_packet_are_dropped() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let number = next_number(&mut pair);
    let new = eye.forge_client(&mut pair, 1, &ping().number(number));
    pair.send_to_server(new);
    let before = pair.server.connection().stats().packets_received;
    let old = eye.forge_client(
        &mut pair,
        0,
        &Forgery::of(&raw(&[0x08, 0])).number(number + 5),
    );
    pair.send_to_server(old);
    assert_eq!(pair.server.connection().stats().packets_received, before);
    assert_eq!(pair.server_error(), None);
}

#[test]
fn overtaken_packet_of_the_old_phase_is_read_for_three_probe_timeouts() {
    for (wait, is_read) in [(Duration::ZERO, true), (Duration::from_secs(2), false)] {
        let (mut pair, eye) = Pair::watched_and_connected();
        let number = next_number(&mut pair);
        let late = eye.forge_client(&mut pair, 0, &ping().number(number));
        let new = eye.forge_client(&mut pair, 1, &ping().number(number + 1));
        pair.send_to_server(new);
        pair.link.filter = Some(Box::new(|_, _| false));
        pair.run_for(wait);
        let before = pair.server.connection().stats().packets_received;
        pair.send_to_server(late);
        let after = pair.server.connection().stats().packets_received;
        assert_eq!(after - before, u64::from(is_read), "after {wait:?}");
        assert_eq!(pair.server_error(), None);
    }
}

#[test]
fn own_update_keeps_the_old_receive_keys_until_the_peer_follows() {
    let (mut pair, eye) = Pair::watched_and_connected();
    update_server(&mut pair);
    pair.link.filter = Some(Box::new(|_, _| false));
    pair.run_for(Duration::from_secs(2));
    let number = next_number(&mut pair);
    let old = eye.forge_client(&mut pair, 0, &ping().number(number));
    let before = pair.server.connection().stats().packets_received;
    pair.send_to_server(old);
    assert_eq!(
        pair.server.connection().stats().packets_received,
        before + 1
    );
}

#[test]
fn phase_bit_without_the_key_changes_nothing() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let flipped = ping()
        .flip(0x04)
        .seal(&mut pair.client, SpaceId::Application);
    let before = pair.server.connection().packets.protection.failures();
    pair.send_to_server(flipped);
    let connection = pair.server.connection();
    assert_eq!(connection.packets.protection.failures(), before + 1);
    assert!(!connection.forging_key_phase());
    pair.forge_to_server(SpaceId::Application, &[0x01]);
    pair.run_for(RTT * 2);
    assert_eq!(last_generations(&eye, &pair), (0, 0));
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

#[test]
fn acknowledging_the_new_phase_from_the_old_one_is_an_error() {
    let (mut pair, eye) = Pair::watched_and_connected();
    update_client(&mut pair);
    pair.link.filter = Some(Box::new(|_, _| false));
    pair.drive();
    let newest = next_number(&mut pair) - 1;
    let number = pair
        .server
        .connection()
        .packets
        .recovery
        .first_unused_number();
    let ack = Forgery::of(&raw(&[0x02, newest, 0, 0, 0])).number(number);
    let old = eye.forge_server(&mut pair, 0, &ack);
    pair.send_to_client(old);
    assert_eq!(pair.client_error(), Some(0x0e));
}

#[test]
fn answer_to_an_update_is_sealed_with_the_new_keys() {
    let (mut pair, eye) = Pair::watched_and_connected();
    update_client(&mut pair);
    let newest = next_number(&mut pair);
    pair.run_for(RTT * 2);
    let acked = eye.server_sent(&pair).into_iter().find(|packet| {
        packet.has(|frame| matches!(frame, Frame::Ack(ack) if ack.largest >= newest))
    });
    assert_eq!(acked.expect("acknowledged").generation, 1);
}

#[test]
fn too_many_forged_packets_end_the_connection() {
    let mut pair = Pair::connected();
    pair.server
        .connection()
        .packets
        .protection
        .limit_forgeries(3);
    let mut forged = ping().seal(&mut pair.client, SpaceId::Application);
    *forged.last_mut().expect("not empty") ^= 1;
    for _ in 0..3 {
        pair.send_to_server(forged.clone());
    }
    assert_eq!(pair.server_error(), None, "the limit itself is allowed");
    pair.send_to_server(forged);
    assert_eq!(pair.server_error(), Some(0x0f));
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_client(), Some(0x0f));
}

#[test]
fn forged_packets_count_over_all_levels_and_keys() {
    let mut pair = Pair::new();
    pair.start();
    assert!(pair.run_until(RTT, |pair| pair.server.handle.is_some()));
    let forge = |pair: &mut Pair, space| {
        let mut forged = ping().seal(&mut pair.server, space);
        *forged.last_mut().expect("not empty") ^= 1;
        pair.send_to_client(forged);
        pair.client.connection().packets.protection.failures()
    };
    assert_eq!(forge(&mut pair, SpaceId::Initial), 1);
    assert!(pair.run_until(RTT * 3, |pair| pair.client.has(&Event::Confirmed)));
    pair.run_for(RTT * 3);
    assert_eq!(forge(&mut pair, SpaceId::Application), 2);
    update_client(&mut pair);
    pair.run_for(RTT * 3);
    assert_eq!(forge(&mut pair, SpaceId::Application), 3);
}

fn set_limits(pair: &mut Pair, update_after: u64, confidentiality: u64) {
    let keys = pair
        .client
        .connection()
        .packets
        .protection
        .one_rtt_keys()
        .expect("connected");
    keys.set_limits(update_after, confidentiality);
}

#[test]
fn keys_at_their_confidentiality_limit_end_the_connection() {
    let (mut pair, eye) = Pair::watched_and_connected();
    set_limits(&mut pair, u64::MAX, 64);
    for _ in 0..100 {
        if pair.client.connection().is_closed() {
            break;
        }
        pair.client.connection().pings().request();
        pair.client.touch();
        pair.run_for(RTT / 4);
    }
    assert_eq!(pair.client_error(), Some(0x0f));
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_server(), Some(0x0f));
    let sealed = generations(&eye.client_sent(&pair)).len();
    assert!((55..=64).contains(&sealed), "{sealed}");
}

#[test]
fn update_before_the_confidentiality_limit_keeps_the_connection_open() {
    let (mut pair, eye) = Pair::watched_and_connected();
    set_limits(&mut pair, 32, 64);
    for _ in 0..150 {
        pair.client.connection().pings().request();
        pair.client.touch();
        pair.run_for(RTT * 2);
    }
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    let generations = generations(&eye.client_sent(&pair));
    for generation in 0..3 {
        let sealed = generations
            .iter()
            .filter(|&&seen| seen == generation)
            .count();
        assert!(sealed < 64, "{sealed} packets under key {generation}");
    }
}
