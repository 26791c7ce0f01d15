//! A peer that updates its keys as often as the rules allow. RFC 9001 §6.1, attack A65.

use courser_base::Side;
use courser_wire::{StreamId, frame};

use super::*;
use crate::connection::watchdog::suspicion::BURST;
use crate::protection::HASTY_UPDATE;
use crate::testing::forge::encode;
use crate::testing::tampering::GENERATIONS;

/// Each update is acknowledged before the next. This is permitted, so it must be cheap.
#[test]
fn updates_with_every_packet_keep_two_generations_and_lose_nothing() {
    let (mut pair, eye) = Pair::watched_and_connected();
    // The honest client has not updated its keys.
    pair.link.filter = Some(Box::new(|_, _| false));
    let honest = next_number(&mut pair);
    for generation in 1..GENERATIONS {
        let number = honest + generation as u64;
        let packet = eye.forge_client(&mut pair, generation, &ping().number(number));
        pair.send_to_server(packet);
        pair.run_for(Duration::from_millis(30));
        assert_eq!(pair.server_error(), None, "generation {generation}");
        let sent = eye.server_sent(&pair);
        let last = generations(&sent).last().copied();
        assert_eq!(last, Some(generation), "the end follows the update");
    }
    // The keys of two generations ago are erased, so the packet cannot be opened.
    let number = honest + 2 * GENERATIONS as u64;
    let stale = eye.forge_client(&mut pair, GENERATIONS - 3, &ping().number(number));
    let before = pair.server.connection().stats().packets_received;
    pair.send_to_server(stale);
    assert_eq!(
        pair.server.connection().stats().packets_received,
        before,
        "not authentic any more"
    );
    assert_eq!(pair.server_error(), None);
}

/// Creates a connected pair whose server tolerates `left` more frames without progress.
fn with_tolerance(left: u32) -> (Pair, Eye) {
    let (mut pair, eye) = Pair::watched_and_connected();
    pair.link.filter = Some(Box::new(|_, _| false));
    let now = pair.now;
    let suspicion = pair.server.connection().watchdog.suspicion();
    for _ in 0..BURST {
        suspicion.on_packet(now, 0, true);
    }
    assert!(suspicion.on_packet(now, BURST - left, false));
    (pair, eye)
}

/// Sends two packets with the keys of `generation`, so that they are acknowledged at once, with the new keys. Each
/// brings a new byte of a stream.
fn update(pair: &mut Pair, eye: &Eye, honest: u64, generation: usize) {
    for half in 0..2 {
        let offset = 2 * (generation as u64 - 1) + half;
        let frame = Frame::Stream(frame::Stream {
            id: StreamId::new(Side::Client, courser_wire::Direction::Unidirectional, 0),
            offset,
            fin: false,
            data: &[7],
        });
        let packet = Forgery::of(&encode(&frame)).number(honest + offset);
        let packet = eye.forge_client(pair, generation, &packet);
        pair.send_to_server(packet);
    }
}

/// Progress does not offset updates: each packet brings a new byte of a stream.
#[test]
fn updates_as_fast_as_acknowledgements_end_the_connection() {
    let (mut pair, eye) = with_tolerance(3 * HASTY_UPDATE);
    let honest = next_number(&mut pair);
    let mut ended_at = None;
    for generation in 1..GENERATIONS {
        update(&mut pair, &eye, honest, generation);
        if pair.server_error().is_some() {
            ended_at = Some(generation);
            break;
        }
    }
    assert_eq!(pair.server_error(), Some(0x0a));
    assert!(ended_at > Some(3), "the first update is free: {ended_at:?}");
}

#[test]
fn one_update_per_probe_timeout_is_free() {
    updates_are_free_every(|pair| {
        let pto = pair.server.connection().packets.recovery.pto();
        assert!(pto < Duration::from_millis(70), "{pto:?}");
        pto
    });
}

/// The probe timeout of the peer can be much shorter than ours, because ours contains its `max_ack_delay`.
#[test]
fn updates_at_the_shortest_interval_of_honest_peers_are_free() {
    updates_are_free_every(|pair| {
        let recovery = &pair.server.connection().packets.recovery;
        let (pto, shortest) = (recovery.pto(), recovery.pto_without_delay());
        assert!(
            pto > shortest + Duration::from_millis(20),
            "{pto:?} {shortest:?}"
        );
        shortest
    });
}

fn updates_are_free_every(interval: impl Fn(&mut Pair) -> Duration) {
    // Time restores fewer frames between two updates than a hasty one costs.
    let (mut pair, eye) = with_tolerance(HASTY_UPDATE);
    let honest = next_number(&mut pair);
    for generation in 1..GENERATIONS {
        let interval = interval(&mut pair);
        pair.run_for(interval);
        update(&mut pair, &eye, honest, generation);
        assert_eq!(pair.server_error(), None, "generation {generation}");
    }
}
