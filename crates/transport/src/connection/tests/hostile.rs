//! Tests invalid input from peers and unauthenticated senders: no panic, no growth, and no effect of
//! packets that cannot be authentic. Attacks A22 to A44 of our catalogue.

use courser_base::Ecn;

use super::*;
use crate::rng::Rng;
use crate::testing::link::Datagram;
use crate::testing::traffic::Transfer;
use crate::testing::{End, Setup, client_address, server_address};

mod floods;
mod frames;
mod silence;

fn seeded(seed: u64) -> Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_be_bytes());
    Rng::new(key)
}

fn index(rng: &mut Rng, len: usize) -> usize {
    usize::try_from(rng.below(len as u64)).expect("below a length")
}

/// Damages a datagram in one of many ways.
fn spoil(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    match rng.below(5) {
        0 => bytes.truncate(index(rng, bytes.len())),
        1 => {
            let at = index(rng, bytes.len());
            rng.fill(&mut bytes[at..]);
        }
        2 => {
            let more = index(rng, 100) + 1;
            // Bytes after an authentic short packet make it a different packet, but after a long
            // one they are only additional bytes: something inside must change as well.
            bytes.resize(bytes.len() + more, 0xa5);
            let at = index(rng, 24);
            bytes[at] ^= 0x10;
        }
        _ => {
            for _ in 0..=rng.below(4) {
                let at = index(rng, bytes.len());
                bytes[at] ^= 1 << rng.below(8);
            }
        }
    }
}

fn is_closed(end: &mut End) -> bool {
    let handle = end.handle.expect("a connection exists");
    end.endpoint
        .connection(handle)
        .is_none_or(Connection::is_closed)
}

#[test]
fn spoiled_copies_of_every_datagram_do_not_disturb_a_handshake() {
    // Each genuine datagram is overtaken by several damaged ones, in every state of both ends.
    for seed in 0..150 {
        let mut rng = seeded(seed);
        let setup = Setup {
            seed: u8::try_from(seed % 200).expect("small"),
            ..Setup::default()
        };
        let mut pair = Pair::with(setup);
        pair.start();
        let (mut client, mut server) = (0, 0);
        let begun = pair.now;
        while !(pair.client.has(&Event::Confirmed) && pair.server.has(&Event::Confirmed)) {
            pair.drive();
            let mut sent = pair.client.sent[client..].to_vec();
            sent.extend_from_slice(&pair.server.sent[server..]);
            (client, server) = (pair.client.sent.len(), pair.server.sent.len());
            // Version Negotiation is not protected (RFC 9000 §21.12).
            sent.retain(|datagram| datagram.bytes[1..5] != [0; 4]);
            for datagram in &sent {
                for _ in 0..4 {
                    let mut spoiled = datagram.clone();
                    spoil(&mut rng, &mut spoiled.bytes);
                    if spoiled.bytes != datagram.bytes {
                        pair.deliver(spoiled);
                    }
                }
            }
            pair.step();
            assert!(
                pair.now - begun < Duration::from_secs(5),
                "seed {seed}: {:?}",
                pair.client.events
            );
        }
        pair.run_for(RTT * 2);
        assert!(
            !is_closed(&mut pair.client) && !is_closed(&mut pair.server),
            "seed {seed}"
        );
    }
}

#[test]
fn every_truncation_of_a_handshake_is_survived() {
    let mut pair = Pair::connected();
    let sent: Vec<_> = pair
        .client
        .sent
        .iter()
        .chain(&pair.server.sent)
        .cloned()
        .collect();
    for datagram in &sent {
        // Both into a fresh pair, which has no state for it, and into the one that sent it.
        let mut fresh = Pair::new();
        fresh.start();
        for len in (0..datagram.bytes.len()).filter(|len| len % 7 == 0 || *len < 60) {
            let mut cut = datagram.clone();
            cut.bytes.truncate(len);
            fresh.deliver(cut.clone());
            pair.deliver(cut);
        }
        pair.drive();
        fresh.drive();
    }
    assert!(!is_closed(&mut pair.client) && !is_closed(&mut pair.server));
    pair.upload(10_000);
}

#[test]
fn spoiled_datagrams_do_not_disturb_a_transfer() {
    // Fault F08 and F09: a third of all datagrams arrives damaged.
    for seed in 10..16 {
        let mut pair = Pair::with(Setup {
            seed,
            ..Setup::default()
        });
        pair.connect();
        let mut rng = seeded(u64::from(seed));
        pair.link.filter = Some(Box::new(move |_, datagram| {
            if rng.below(3) == 0 {
                spoil(&mut rng, &mut datagram.bytes);
            }
            true
        }));
        let up = Transfer::up(&mut pair, 100_000);
        assert!(
            up.finish(&mut pair, Duration::from_secs(100)).is_some(),
            "seed {seed}"
        );
        assert!(
            !is_closed(&mut pair.client) && !is_closed(&mut pair.server),
            "seed {seed}"
        );
    }
}

#[test]
fn datagrams_that_do_not_authenticate_change_nothing() {
    let mut pair = Pair::connected();
    pair.upload(50_000);
    pair.run_for(RTT * 3);
    let genuine: Vec<_> = pair.client.sent.iter().rev().take(20).cloned().collect();
    let mut rng = seeded(1);
    let before = pair.server.connection().stats();
    let sent = pair.server.sent.len();
    for round in 0..5_000 {
        let mut datagram = genuine[round % genuine.len()].clone();
        // Changes only bytes that a short header protects: the ID stays.
        let at = 9 + index(&mut rng, datagram.bytes.len() - 9);
        datagram.bytes[at] ^= 1 << rng.below(8);
        pair.deliver(datagram);
    }
    pair.drive();
    let after = pair.server.connection().stats();
    assert_eq!(after.packets_received, before.packets_received);
    assert_eq!(after.packets_dropped, before.packets_dropped + 5_000);
    assert_eq!(pair.server.sent.len(), sent, "no answer to any");
}

#[test]
fn duplicated_datagrams_have_no_effect() {
    // Fault F07.
    let mut pair = Pair::new();
    pair.link.duplicate = 1000;
    pair.link.reorder = 300;
    pair.connect();
    pair.upload(300_000);
    pair.download(300_000);
    assert_eq!(pair.server.endpoint.stats().accepted, 1);
    assert_eq!(pair.server.connection().stats().data_received, 300_000);
}

#[test]
fn close_at_any_time_frees_all_memory() {
    // Attack A44: by either end, after each step of a handshake and a transfer.
    for by_client in [true, false] {
        for step in 0..60 {
            let mut pair = Pair::new();
            pair.start();
            for _ in 0..step {
                pair.step();
            }
            let now = pair.now;
            let end = if by_client {
                &mut pair.client
            } else {
                &mut pair.server
            };
            let Some(handle) = end.handle else { continue };
            let Some(connection) = end.endpoint.connection_mut(handle) else {
                continue;
            };
            connection.close(now, 5, b"enough");
            connection.close(now, 6, b"twice");
            connection.pings().request();
            let streams = connection.streams();
            if let Some(id) = streams.open(Direction::Bidirectional) {
                let _ = streams.write(id, b"late");
            }
            end.endpoint.mark_ready(handle);
            pair.run_for(Duration::from_secs(60));
            for (who, end) in [("client", &pair.client), ("server", &pair.server)] {
                let stats = end.endpoint.stats();
                let left = (stats.connections, stats.half_open, stats.waiting);
                assert_eq!(left, (0, 0, 0), "{who}, step {step}, by client {by_client}");
            }
        }
    }
}

#[test]
fn transfer_survives_mixed_faults() {
    // Fault F64: loss, reordering, duplication, corruption, a narrow link and rebinding at once.
    for seed in 0..8 {
        let mut pair = Pair::with(Setup {
            seed,
            ..Setup::default()
        });
        pair.link.loss = 40;
        pair.link.reorder = 200;
        pair.link.duplicate = 50;
        pair.link.rate = Some(1_000_000);
        let mut rng = seeded(u64::from(seed) + 100);
        pair.link.filter = Some(Box::new(move |_, datagram| {
            if rng.below(30) == 0 {
                spoil(&mut rng, &mut datagram.bytes);
            }
            true
        }));
        pair.connect();
        let mut up = Transfer::up(&mut pair, 150_000);
        let mut down = Transfer::down(&mut pair, 150_000);
        let (mut steps, begun) = (0, pair.now);
        while !(up.step(&mut pair) & down.step(&mut pair)) {
            steps += 1;
            if steps % 500 == 0 {
                let port = 50_000 + steps / 500 % 1000;
                pair.client.address.set_port(port);
            }
            pair.step();
            let (up, down) = (up.received(), down.received());
            assert!(
                pair.now - begun < Duration::from_secs(120),
                "seed {seed}: {up} and {down}"
            );
        }
    }
}

#[test]
fn memory_is_bounded_without_acknowledgements() {
    // Attack A24: a receiver of much data that stops sending.
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to != server_address()));
    let streams = pair.server.connection().streams();
    let mut accepted = 0;
    for _ in 0..50 {
        let id = streams.open(Direction::Unidirectional).expect("room");
        while let Ok(n) = streams.write(id, &[1; 10_000]) {
            accepted += n;
        }
    }
    pair.server.touch();
    pair.run_for(Duration::from_secs(10));
    // The smallest limit of the send buffer (K39) with its reserve (K590), and the bytes that each stream may hold
    // beyond it (K80).
    let most = (144 << 10) + 50 * 512;
    assert!(accepted <= most, "{accepted} bytes");
    let stats = pair.server.connection().stats();
    assert!(stats.path.bytes_in_flight <= stats.path.congestion_window + 40 * 1200);
    assert!(
        pair.server.sent.len() < 200,
        "{} datagrams",
        pair.server.sent.len()
    );
}

#[test]
fn datagrams_of_any_size_leave_the_connection_open() {
    // RFC 9000 §14: odd sizes are not an error.
    let mut pair = Pair::connected();
    for len in 0..3000 {
        let (from, to) = (client_address(), server_address());
        let bytes = vec![0x41; len];
        pair.deliver(Datagram {
            from,
            to,
            ecn: Ecn::Ce,
            bytes,
        });
    }
    pair.drive();
    assert!(!is_closed(&mut pair.server));
}
