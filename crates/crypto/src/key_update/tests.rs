use super::*;
use crate::TAG_LEN;
use crate::testing::{SUITES, secret_pairs};

/// A sealed packet in transit.
#[derive(Clone, Debug)]
struct InTransit {
    number: u64,
    phase: bool,
    payload: Vec<u8>,
}

const HEADER: [u8; 3] = [0x40, 1, 2];

fn ends(suite: CipherSuite) -> (OneRttKeys, OneRttKeys) {
    let (client, server) = secret_pairs(suite);
    (
        OneRttKeys::new(client, Side::Client),
        OneRttKeys::new(server, Side::Server),
    )
}

fn aes_ends() -> (OneRttKeys, OneRttKeys) {
    ends(CipherSuite::Aes128Gcm)
}

fn send(keys: &mut OneRttKeys, number: u64) -> InTransit {
    let mut packet = [&HEADER[..], b"payload", &[0; TAG_LEN]].concat();
    keys.seal_packet(PathId::ZERO, number, &mut packet, HEADER.len());
    InTransit {
        number,
        phase: keys.key_phase(),
        payload: packet.split_off(HEADER.len()),
    }
}

fn receive(keys: &mut OneRttKeys, packet: &InTransit) -> Result<bool, OneRttOpenError> {
    let mut payload = packet.payload.clone();
    let opened = keys.open(
        PathId::ZERO,
        packet.number,
        packet.phase,
        &HEADER,
        &mut payload,
    )?;
    assert_eq!(&payload[..opened.len], b"payload");
    Ok(opened.peer_updated)
}

/// Returns all state that a forged packet must leave unchanged.
fn state(keys: &OneRttKeys) -> String {
    let (send, receive) = (&keys.send, &keys.receive);
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?}",
        (
            send.generation,
            send.sealed,
            &send.numbers,
            send.acknowledged
        ),
        (receive.generation, &receive.numbers),
        receive.previous.is_some(),
        send.secret.as_bytes(),
        receive.secret.as_bytes(),
        keys.key_phase(),
    )
}

/// Carries one packet from each end to the other and acknowledges both. Neither end then waits for
/// anything.
fn exchange(a: &mut OneRttKeys, b: &mut OneRttKeys, number: u64) {
    let there = send(a, number);
    receive(b, &there).unwrap();
    let back = send(b, number);
    receive(a, &back).unwrap();
    a.on_packet_acked(PathId::ZERO, number);
    b.on_packet_acked(PathId::ZERO, number);
}

#[test]
fn stored_keys_continue_where_they_were() {
    for suite in SUITES {
        let (mut a, mut b) = ends(suite);
        exchange(&mut a, &mut b, 1);
        let before = state(&a);
        let stored = Box::new(a).store().expect("the keys were not updated");
        let mut a = OneRttKeys::from(stored);
        assert_eq!(state(&a), before);
        exchange(&mut a, &mut b, 2);
        // The peer may have updated while they were stored.
        a = OneRttKeys::from(Box::new(a).store().expect("the keys were not updated"));
        b.update();
        let there = send(&mut b, 3);
        assert_eq!(receive(&mut a, &there), Ok(true));
        exchange(&mut a, &mut b, 4);
        let before = state(&a);
        let a = Box::new(a).store().expect_err("the keys were updated");
        assert_eq!(state(&a), before);
    }
}

#[test]
fn update_of_either_end_is_followed_by_the_other() {
    for suite in SUITES {
        let (mut client, mut server) = ends(suite);
        exchange(&mut client, &mut server, 0);
        client.update();
        assert!(client.key_phase(), "{suite}");
        assert!(
            receive(&mut server, &send(&mut client, 1)).unwrap(),
            "{suite}"
        );
        assert!(
            server.key_phase(),
            "{suite}: the response is sealed with new keys"
        );
        assert!(
            receive(&mut client, &send(&mut server, 1)).unwrap(),
            "{suite}"
        );
        exchange(&mut client, &mut server, 2);
        server.update();
        assert!(
            receive(&mut client, &send(&mut server, 3)).unwrap(),
            "{suite}"
        );
        assert!(
            receive(&mut server, &send(&mut client, 3)).unwrap(),
            "{suite}"
        );
        assert!(!client.key_phase() && !server.key_phase(), "{suite}");
        exchange(&mut client, &mut server, 4);
    }
}

/// RFC 9001 §6.3: opening a packet of the next phase takes no derivation, whose duration would
/// reveal the update.
#[test]
fn next_key_is_derived_before_the_update() {
    for suite in SUITES {
        let (mut client, mut server) = ends(suite);
        for round in 0..4_u64 {
            exchange(&mut client, &mut server, 2 * round);
            let before = state(&server);
            client.update();
            let packet = send(&mut client, 2 * round + 1);
            let mut payload = packet.payload.clone();
            let opened = server
                .receive
                .next
                .open(packet.number, &HEADER, &mut payload);
            assert_eq!(opened.ok(), Some(b"payload".len()), "{suite} {round}");
            assert_eq!(
                state(&server),
                before,
                "{suite} {round}: nothing is derived"
            );
            assert_eq!(receive(&mut server, &packet), Ok(true), "{suite} {round}");
            let back = send(&mut server, 2 * round + 1);
            receive(&mut client, &back).unwrap();
            client.on_packet_acked(PathId::ZERO, 2 * round + 1);
            server.on_packet_acked(PathId::ZERO, 2 * round + 1);
        }
    }
}

#[test]
fn both_ends_may_update_at_once() {
    let (mut client, mut server) = aes_ends();
    exchange(&mut client, &mut server, 0);
    client.update();
    server.update();
    let (there, back) = (send(&mut client, 1), send(&mut server, 1));
    assert!(receive(&mut server, &there).unwrap());
    assert!(receive(&mut client, &back).unwrap());
    assert_eq!((client.send.generation, server.send.generation), (1, 1));
    exchange(&mut client, &mut server, 2);
}

#[test]
fn consecutive_updates_are_followed() {
    let (mut client, mut server) = aes_ends();
    for round in 0..20_u64 {
        exchange(&mut client, &mut server, round * 3);
        assert!(client.is_update_acknowledged(), "{round}");
        client.update();
        exchange(&mut client, &mut server, round * 3 + 1);
        client.drop_previous();
        server.drop_previous();
    }
    assert_eq!(
        (client.receive.generation, server.receive.generation),
        (20, 20)
    );
}

#[test]
fn packets_overtaken_by_an_update_open_with_the_previous_key() {
    let (mut client, mut server) = aes_ends();
    let old: Vec<_> = (0..5).map(|number| send(&mut client, number)).collect();
    receive(&mut server, &old[1]).unwrap();
    client.update();
    let new: Vec<_> = (5..8).map(|number| send(&mut client, number)).collect();
    assert_eq!(receive(&mut server, &new[1]), Ok(true));
    for packet in [&old[4], &new[0], &old[0], &new[2], &old[3], &old[2]] {
        assert_eq!(receive(&mut server, packet), Ok(false), "{}", packet.number);
    }
}

#[test]
fn initiator_reads_old_keys_until_the_peer_follows() {
    let (mut client, mut server) = aes_ends();
    exchange(&mut client, &mut server, 0);
    client.update();
    assert_eq!(receive(&mut client, &send(&mut server, 1)), Ok(false));
    let late = send(&mut server, 2);
    receive(&mut server, &send(&mut client, 1)).unwrap();
    assert_eq!(receive(&mut client, &send(&mut server, 3)), Ok(true));
    assert_eq!(receive(&mut client, &late), Ok(false));
}

#[test]
fn late_packet_is_discarded_once_the_previous_key_is_dropped() {
    let (mut client, mut server) = aes_ends();
    let late = send(&mut client, 0);
    client.update();
    receive(&mut server, &send(&mut client, 1)).unwrap();
    assert!(server.previous_installed());
    server.drop_previous();
    assert!(!server.previous_installed());
    let before = state(&server);
    assert_eq!(receive(&mut server, &late), Err(OneRttOpenError::Discard));
    assert_eq!(state(&server), before);
}

#[test]
fn second_update_replaces_the_previous_key() {
    let (mut client, mut server) = aes_ends();
    let first = send(&mut client, 0);
    client.update();
    let second = send(&mut client, 1);
    exchange(&mut client, &mut server, 2);
    client.update();
    exchange(&mut client, &mut server, 3);
    assert_eq!(receive(&mut server, &second), Ok(false));
    assert_eq!(receive(&mut server, &first), Err(OneRttOpenError::Discard));
}

#[test]
fn second_update_without_an_acknowledgment_is_an_error() {
    let (mut client, mut server) = aes_ends();
    exchange(&mut client, &mut server, 0);
    client.update();
    receive(&mut server, &send(&mut client, 1)).unwrap();
    // Advance the client's keys further than RFC 9001 §6.1 allows.
    client.send.roll();
    let too_soon = send(&mut client, 2);
    assert_eq!(
        receive(&mut server, &too_soon),
        Err(OneRttOpenError::KeyUpdateError)
    );
}

#[test]
fn older_key_on_a_higher_packet_number_is_discarded() {
    let (mut client, mut server) = aes_ends();
    let (mut violator, _) = aes_ends();
    exchange(&mut client, &mut server, 0);
    client.update();
    receive(&mut server, &send(&mut client, 5)).unwrap();
    let before = state(&server);
    assert_eq!(
        receive(&mut server, &send(&mut violator, 6)),
        Err(OneRttOpenError::Discard)
    );
    assert_eq!(state(&server), before);
}

#[test]
fn newer_key_below_a_packet_number_of_the_older_is_an_error() {
    // The update itself has too low a packet number.
    let (mut client, mut server) = aes_ends();
    receive(&mut server, &send(&mut client, 9)).unwrap();
    let (mut violator, _) = aes_ends();
    violator.update();
    let below = send(&mut violator, 8);
    assert_eq!(
        receive(&mut server, &below),
        Err(OneRttOpenError::KeyUpdateError)
    );

    // The violation shows only later, after an old packet and a new one were reordered.
    let (mut client, mut server) = aes_ends();
    let (mut violator, _) = aes_ends();
    let old = send(&mut client, 7);
    violator.update();
    let (low, high) = (send(&mut violator, 6), send(&mut violator, 8));
    receive(&mut server, &high).unwrap();
    receive(&mut server, &old).unwrap();
    assert_eq!(
        receive(&mut server, &low),
        Err(OneRttOpenError::KeyUpdateError)
    );
}

#[test]
fn forged_packets_change_nothing() {
    let (mut client, mut server) = aes_ends();
    let old = send(&mut client, 0);
    client.update();
    exchange(&mut client, &mut server, 1);
    let genuine = send(&mut client, 2);
    let before = state(&server);
    for packet in [&old, &genuine] {
        for number in [0, packet.number, packet.number + 1, u64::MAX >> 2] {
            for phase in [false, true] {
                let mut forged = InTransit {
                    number,
                    phase,
                    ..packet.clone()
                };
                forged.payload[3] ^= 1;
                let result = receive(&mut server, &forged);
                assert_eq!(result, Err(OneRttOpenError::Discard), "{number} {phase}");
                assert_eq!(state(&server), before, "{number} {phase}");
            }
        }
    }
    assert_eq!(receive(&mut server, &genuine), Ok(false));
    assert_eq!(receive(&mut server, &old), Ok(false));
}

#[test]
fn flipped_key_phase_does_not_update_keys() {
    let (mut client, mut server) = aes_ends();
    let mut packet = send(&mut client, 0);
    packet.phase = true;
    let before = state(&server);
    assert_eq!(receive(&mut server, &packet), Err(OneRttOpenError::Discard));
    assert_eq!(state(&server), before);
}

#[test]
fn update_is_acknowledged_only_by_a_packet_of_its_phase() {
    let (mut client, mut server) = aes_ends();
    assert!(!client.is_update_acknowledged());
    exchange(&mut client, &mut server, 0);
    assert!(client.is_update_acknowledged());
    client.update();
    let packet = send(&mut client, 1);
    client.on_packet_acked(PathId::ZERO, 0);
    assert!(!client.is_update_acknowledged());
    client.on_packet_acked(PathId::ZERO, 1);
    assert!(
        !client.is_update_acknowledged(),
        "the peer has not followed"
    );
    receive(&mut server, &packet).unwrap();
    receive(&mut client, &send(&mut server, 1)).unwrap();
    assert!(client.is_update_acknowledged());
}

#[test]
fn acknowledgment_of_new_keys_under_old_ones_breaks_the_rules() {
    let (mut client, mut server) = aes_ends();
    exchange(&mut client, &mut server, 0);
    client.update();
    let packet = send(&mut client, 1);
    assert!(!client.acknowledgment_breaks_phase(PathId::ZERO, 0));
    assert!(client.acknowledgment_breaks_phase(PathId::ZERO, 1));
    receive(&mut server, &packet).unwrap();
    receive(&mut client, &send(&mut server, 1)).unwrap();
    assert!(!client.acknowledgment_breaks_phase(PathId::ZERO, 1));
}

#[test]
fn packets_before_following_the_peer_do_not_acknowledge_the_update() {
    let (mut client, mut server) = aes_ends();
    exchange(&mut client, &mut server, 0);
    send(&mut server, 1);
    client.update();
    receive(&mut server, &send(&mut client, 1)).unwrap();
    server.on_packet_acked(PathId::ZERO, 1);
    assert!(!server.is_update_acknowledged());
    send(&mut server, 2);
    server.on_packet_acked(PathId::ZERO, 2);
    assert!(server.is_update_acknowledged());
}

#[test]
fn sealed_packets_are_counted_per_key() {
    let (mut client, mut server) = aes_ends();
    client.set_limits(3, 5);
    exchange(&mut client, &mut server, 0);
    send(&mut client, 1);
    assert!(!client.should_update());
    send(&mut client, 2);
    assert!(client.should_update() && !client.is_exhausted());
    send(&mut client, 3);
    send(&mut client, 4);
    assert!(client.is_exhausted());
    client.update();
    assert_eq!(client.sealed(), 0);
    assert!(!client.should_update() && !client.is_exhausted());
}

#[test]
fn update_of_the_peer_restarts_the_count() {
    let (mut client, mut server) = aes_ends();
    exchange(&mut client, &mut server, 0);
    client.update();
    receive(&mut server, &send(&mut client, 1)).unwrap();
    assert_eq!(server.sealed(), 0);
}

#[test]
fn default_limits_leave_room_below_those_of_the_suite() {
    for suite in SUITES {
        let (mut client, _) = ends(suite);
        client.send.sealed = UPDATE_AFTER;
        assert!(client.should_update() && !client.is_exhausted(), "{suite}");
        client.send.sealed = suite.confidentiality_limit() - RESERVE;
        assert!(client.is_exhausted(), "{suite}");
    }
}

#[test]
fn update_while_the_last_one_is_unanswered_does_nothing() {
    let (mut client, mut server) = aes_ends();
    exchange(&mut client, &mut server, 0);
    client.update();
    let before = state(&client);
    let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client.update()));
    assert_eq!(again.is_err(), cfg!(debug_assertions));
    assert_eq!(state(&client), before);
}

#[test]
fn header_keys_stay_the_same() {
    let (mut client, mut server) = aes_ends();
    let sample = [7; 16];
    let before = (
        client.local_header().mask(&sample),
        client.peer_header().mask(&sample),
    );
    exchange(&mut client, &mut server, 0);
    client.update();
    exchange(&mut client, &mut server, 1);
    assert_eq!(
        before,
        (
            client.local_header().mask(&sample),
            client.peer_header().mask(&sample)
        )
    );
    assert_eq!(server.peer_header().mask(&sample), before.0);
}

/// Delivers random packets in random order with updates in between, and compares the results with a
/// model that tracks the generation of every packet.
#[test]
fn random_orders_agree_with_a_model() {
    let mut updates = 0;
    for seed in 0..200_u8 {
        let mut rng = crate::Rng::new([seed; 32]);
        let (mut client, mut server) = aes_ends();
        let mut in_transit: Vec<(u64, InTransit)> = Vec::new();
        let (mut number, mut back_number) = (0, 0);
        for _ in 0..300 {
            match rng.below(10) {
                0..5 => {
                    number += 1 + rng.below(2);
                    let generation = client.send.generation;
                    in_transit.push((generation, send(&mut client, number)));
                }
                5 if client.is_update_acknowledged() => client.update(),
                5 => {
                    let back = send(&mut server, back_number);
                    back_number += 1;
                    let _ = receive(&mut client, &back);
                    if server.receive.generation == client.send.generation {
                        client.on_packet_acked(PathId::ZERO, number);
                    }
                }
                _ if in_transit.is_empty() => {}
                _ => {
                    let index = usize::try_from(rng.below(in_transit.len() as u64)).unwrap();
                    let (generation, packet) = in_transit.swap_remove(index);
                    let received = server.receive.generation;
                    let result = receive(&mut server, &packet);
                    if generation + 1 >= received {
                        assert_eq!(result, Ok(generation > received), "seed {seed}");
                    } else {
                        assert_eq!(result, Err(OneRttOpenError::Discard), "seed {seed}");
                    }
                }
            }
        }
        updates += client.send.generation;
    }
    assert!(updates > 500, "{updates}");
}

mod paths;
