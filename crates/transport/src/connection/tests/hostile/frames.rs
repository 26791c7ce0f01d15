//! Tests authentic packets of random frames: each is accepted, or closes the connection with a code,
//! without a panic.

use courser_wire::{Writer, varint_len};

use super::*;
use crate::connection::ConnectionError;
use crate::testing::forge::forge;

/// Frame types of version 1, and some unassigned ones.
const TYPES: [u64; 38] = [
    0x00,
    0x01,
    0x02,
    0x03,
    0x04,
    0x05,
    0x06,
    0x07,
    0x08,
    0x09,
    0x0a,
    0x0b,
    0x0c,
    0x0d,
    0x0e,
    0x0f,
    0x10,
    0x11,
    0x12,
    0x13,
    0x14,
    0x15,
    0x16,
    0x17,
    0x18,
    0x19,
    0x1a,
    0x1b,
    0x1c,
    0x1d,
    0x1e,
    0x1f,
    0xaf,
    0x20,
    0x30,
    0x31,
    0x40,
    0x1234_5678,
];

fn put_varint(out: &mut Vec<u8>, value: u64) {
    let mut bytes = [0; 8];
    let len = varint_len(value);
    Writer::new(&mut bytes).varint(value);
    out.extend_from_slice(&bytes[..len]);
}

/// Returns numbers that parsers and counters are likely to mishandle.
fn number(rng: &mut Rng) -> u64 {
    const EDGES: [u64; 14] = [
        0,
        1,
        2,
        3,
        4,
        63,
        64,
        16_383,
        16_384,
        1 << 30,
        1 << 60,
        (1 << 60) + 1,
        (1 << 62) - 2,
        (1 << 62) - 1,
    ];
    match rng.below(4) {
        0 => EDGES[index(rng, EDGES.len())],
        1 => rng.below(1 << 62),
        2 => rng.below(500),
        _ => rng.below(20),
    }
}

/// Returns payloads that range from valid frames to noise.
fn random_payload(rng: &mut Rng) -> Vec<u8> {
    let mut payload = Vec::new();
    for _ in 0..=rng.below(4) {
        match rng.below(8) {
            0 => {
                let mut bytes = vec![0; index(rng, 60) + 1];
                rng.fill(&mut bytes);
                payload.extend(bytes);
            }
            1 => payload.push(1),
            2 => {
                // CRYPTO near the offset that TLS reads.
                put_varint(&mut payload, 0x06);
                put_varint(&mut payload, rng.below(2000));
                let len = index(rng, 300);
                put_varint(&mut payload, len as u64);
                let at = payload.len();
                payload.resize(at + len, 0);
                rng.fill(&mut payload[at..]);
            }
            3 => {
                // STREAM in a well-formed frame.
                put_varint(&mut payload, 0x0e | rng.below(2));
                put_varint(&mut payload, rng.below(420));
                put_varint(&mut payload, number(rng) % 300_000);
                let len = index(rng, 200);
                put_varint(&mut payload, len as u64);
                payload.resize(payload.len() + len, 0xcd);
            }
            _ => {
                put_varint(&mut payload, TYPES[index(rng, TYPES.len())]);
                for _ in 0..rng.below(6) {
                    let value = number(rng);
                    put_varint(&mut payload, value);
                }
                if rng.below(3) == 0 {
                    let mut bytes = vec![0; index(rng, 40)];
                    rng.fill(&mut bytes);
                    payload.extend(bytes);
                }
            }
        }
    }
    payload.truncate(1100);
    payload
}

/// Returns the spaces that both ends can use now.
fn open_spaces(pair: &mut Pair) -> Vec<SpaceId> {
    let mut both = SpaceId::ALL.to_vec();
    for end in [&mut pair.client, &mut pair.server] {
        if end
            .handle
            .and_then(|handle| end.endpoint.connection(handle))
            .is_none()
        {
            return Vec::new();
        }
        let connection = end.connection();
        both.retain(|&id| {
            let is_early = id == SpaceId::Application && connection.is_handshaking();
            connection.packets.protection.has_keys(id) && !is_early
        });
    }
    both
}

fn send(pair: &mut Pair, to_server: bool, space: SpaceId, payload: &[u8]) {
    if to_server {
        let bytes = forge(&mut pair.client, space, payload);
        let (from, to) = (client_address(), server_address());
        pair.deliver(Datagram {
            from,
            to,
            ecn: Ecn::NotEct,
            bytes,
        });
    } else {
        let bytes = forge(&mut pair.server, space, payload);
        let (from, to) = (server_address(), client_address());
        pair.deliver(Datagram {
            from,
            to,
            ecn: Ecn::NotEct,
            bytes,
        });
    }
}

/// Asserts that a connection that is over ended with a code of RFC 9000 §20.
fn assert_sound(end: &End, seed: u64) {
    for event in &end.events {
        let Event::Lost(error) = event else { continue };
        match error {
            ConnectionError::TransportError(error) => {
                let code = error.code.value();
                assert!(
                    (1..=0x10).contains(&code) || (0x100..0x200).contains(&code),
                    "seed {seed}: {error}"
                );
                assert_ne!(code, 0x01, "seed {seed}: a bug of ours: {error}");
            }
            ConnectionError::ConnectionClosed(_)
            | ConnectionError::ApplicationClosed { .. }
            | ConnectionError::TimedOut
            | ConnectionError::HandshakeTimedOut => {}
            other => panic!("seed {seed}: {other}"),
        }
    }
}

/// Sends random frames to one end at a given moment of a connection's life.
fn attack(seed: u64, steps: usize, packets: usize) {
    let mut rng = seeded(seed);
    let mut pair = Pair::with(Setup {
        seed: u8::try_from(seed % 100).expect("small"),
        ..Setup::default()
    });
    pair.start();
    for _ in 0..steps {
        pair.step();
    }
    let to_server = rng.below(2) == 0;
    for _ in 0..packets {
        let spaces = open_spaces(&mut pair);
        if spaces.is_empty() {
            break;
        }
        let space = spaces[index(&mut rng, spaces.len())];
        let payload = random_payload(&mut rng);
        send(&mut pair, to_server, space, &payload);
        if rng.below(3) > 0 {
            pair.drive();
        }
        if rng.below(8) == 0 {
            pair.run_for(RTT);
        }
    }
    pair.run_for(Duration::from_secs(61));
    assert_sound(&pair.client, seed);
    assert_sound(&pair.server, seed);
    for (who, end) in [("client", &pair.client), ("server", &pair.server)] {
        let stats = end.endpoint.stats();
        assert_eq!(
            (stats.connections, stats.half_open),
            (0, 0),
            "{who}, seed {seed}"
        );
    }
}

#[test]
fn random_frames_in_1_rtt_packets_are_accepted_or_close() {
    for seed in 0..1500 {
        attack(seed, 40, 12);
    }
}

#[test]
fn random_frames_at_every_step_of_the_handshake_are_accepted_or_close() {
    for seed in 0..1200 {
        attack(10_000 + seed, usize::try_from(seed % 12).expect("small"), 3);
    }
}

#[test]
fn single_frames_of_every_type_with_edge_values_are_accepted_or_close() {
    // Each connection is used as long as it lives.
    let mut rng = seeded(99);
    let mut pair = Pair::connected();
    let mut deaths = 0;
    for round in 0..6_000u64 {
        if is_closed(&mut pair.client) || is_closed(&mut pair.server) {
            pair.drive();
            assert_sound(&pair.client, round);
            assert_sound(&pair.server, round);
            pair = Pair::connected();
            deaths += 1;
        }
        let mut payload = Vec::new();
        put_varint(
            &mut payload,
            TYPES[usize::try_from(round).expect("small") % TYPES.len()],
        );
        for _ in 0..rng.below(7) {
            let value = number(&mut rng);
            put_varint(&mut payload, value);
        }
        send(&mut pair, round % 2 == 0, SpaceId::Application, &payload);
        pair.drive();
    }
    assert!(deaths > 1000, "{deaths}");
}

#[test]
fn valid_frames_before_an_invalid_one_do_not_hide_it() {
    // A packet that breaks a rule ends the connection even if it begins with valid frames.
    let mut pair = Pair::connected();
    let mut payload = vec![1, 1, 1];
    payload.extend_from_slice(&[0x1e]);
    pair.forge_to_server(SpaceId::Application, &payload);
    assert_eq!(
        pair.server_error(),
        Some(0x0a),
        "HANDSHAKE_DONE from a client"
    );
}
