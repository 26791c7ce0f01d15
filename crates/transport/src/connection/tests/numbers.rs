//! Packet numbers that begin with a random number. RFC 9000 §12.3, §17.1.

use courser_wire::packet::PacketKind;

use super::frames::raw;
use super::*;
use crate::testing::traffic::Transfer;
use crate::testing::{Setup, steady};

fn setup(seed: u8) -> Setup {
    let transport = TransportConfig {
        random_packet_numbers: true,
        ..steady()
    };
    let mut setup = Setup {
        seed,
        client: transport.clone(),
        ..Setup::default()
    };
    setup.server.transport = Arc::new(transport);
    setup
}

fn connected(seed: u8) -> Pair {
    let mut pair = Pair::with(setup(seed));
    pair.connect();
    pair
}

fn next_number(end: &mut crate::testing::End) -> u64 {
    end.connection().packets.recovery.first_unused_number()
}

#[test]
fn each_space_begins_with_a_random_number_of_four_bytes() {
    let (setup, eye) = setup(7).with_eye();
    let mut pair = Pair::with(setup);
    pair.connect();
    let seen = [eye.client_sent(&pair), eye.server_sent(&pair)].concat();
    for kind in [
        PacketKind::Initial,
        PacketKind::Handshake,
        PacketKind::OneRtt,
    ] {
        let numbers = seen.iter().filter(|it| it.kind == kind);
        let smallest = numbers.map(|it| it.number).min().expect("a packet");
        assert!(
            (1 << 16..1 << 30).contains(&smallest),
            "{kind:?} {smallest}"
        );
    }
}

#[test]
fn ends_decode_numbers_correctly_through_losses_and_key_updates() {
    for seed in 0..8 {
        let mut pair = connected(seed);
        let begun = next_number(&mut pair.server);
        let mut sent = 0;
        pair.link.filter = Some(Box::new(move |_, _| {
            sent += 1;
            sent % 23 != 0
        }));
        for _ in 0..3 {
            let transfer = Transfer::down(&mut pair, 400_000);
            let elapsed = transfer.finish(&mut pair, Duration::from_secs(30));
            assert!(elapsed.is_some(), "seed {seed}");
            let now = pair.now;
            let updated = pair.server.connection().initiate_key_update(now);
            pair.server.touch();
            assert_eq!(updated, Ok(()), "seed {seed}");
            pair.run_for(RTT * 10);
        }
        let stats = pair.client.connection().stats();
        assert_eq!(
            (stats.key_updates, stats.packets_dropped),
            (3, 0),
            "seed {seed}"
        );
        assert!(next_number(&mut pair.server) - begun > 900, "seed {seed}");
        assert_eq!(pair.client_error().or(pair.server_error()), None);
    }
}

#[test]
fn losses_during_the_handshake_do_not_break_random_numbers() {
    for lost in 0..10 {
        let mut pair = Pair::with(setup(lost));
        let mut sent = 0;
        pair.link.filter = Some(Box::new(move |_, _| {
            sent += 1;
            sent != usize::from(lost)
        }));
        pair.connect();
        assert_eq!(pair.client_error().or(pair.server_error()), None, "{lost}");
    }
}

#[test]
fn numbers_continue_after_a_retry() {
    let mut setup = setup(7);
    setup.server.retry = crate::RetryPolicy::Always;
    let mut pair = Pair::with(setup);
    pair.connect();
    assert!(pair.server.endpoint.stats().retries_sent > 0);
}

/// Numbers below the first were never sent (attack A22).
#[test]
fn acknowledging_numbers_below_the_first_is_a_protocol_violation() {
    let first = connected(7)
        .server
        .connection()
        .packets
        .recovery
        .first_number();
    let largest = |pair: &mut Pair| next_number(&mut pair.server) - 1;
    for (case, violates) in [
        ("only the first", false),
        ("one below", true),
        ("all", true),
    ] {
        let mut pair = connected(7);
        let end = largest(&mut pair);
        let (frame, from) = match case {
            // largest, delay, no further ranges, numbers below it
            "only the first" => ([0x02, first, 0, 0, 0], first),
            "one below" => ([0x02, first, 0, 0, 1], first),
            _ => ([0x02, end, 0, 0, end], end),
        };
        assert!(from >= first, "{case}");
        pair.forge_to_server(SpaceId::Application, &raw(&frame));
        let error = violates.then_some(0x0a);
        assert_eq!(pair.server_error(), error, "{case}");
    }
}

#[test]
fn first_numbers_are_zero_by_default() {
    let mut pair = Pair::connected();
    assert_eq!(pair.server.connection().packets.recovery.first_number(), 0);
    assert!(next_number(&mut pair.server) < 20);
}
