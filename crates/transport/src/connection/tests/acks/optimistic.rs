//! Tests a receiver that acknowledges packets which it has not received, to make the sender faster.
//! RFC 9000 §21.4, attack A23.

use std::sync::Arc;

use courser_wire::TransportErrorCode;

use super::*;
use crate::TransportError;
use crate::config::{PathMemory, TransportConfig};
use crate::testing::traffic::Transfer;
use crate::testing::{Setup, steady};

/// Packets of the initial window of RFC 9002 §7.2.
const INITIAL_WINDOW: u64 = 10;

fn connected(seed: u8) -> Pair {
    let mut pair = Pair::with(Setup {
        seed,
        ..Setup::default()
    });
    pair.connect();
    pair
}

/// Returns how many packets a server sends to a client that acknowledges all of them at once, until
/// the server detects it.
fn packets_until_detection(seed: u8) -> u64 {
    let mut pair = connected(seed);
    pair.link.filter = Some(Box::new(|_, _| false));
    let begun = next_number(&mut pair.server);
    let mut transfer = Transfer::down(&mut pair, 4_000_000);
    loop {
        pair.run_for(RTT / 4);
        let next = next_number(&mut pair.server);
        pair.forge_to_server(SpaceId::Application, &ack(next - 1, next - begun - 1));
        match pair.server_error() {
            Some(code) => {
                assert_eq!(code, 0x0a, "PROTOCOL_VIOLATION");
                return next - begun;
            }
            None => assert!(!transfer.step(&mut pair), "the transfer ends undetected"),
        }
    }
}

#[test]
fn optimistic_acknowledgements_are_detected_within_a_few_windows() {
    let needed: Vec<u64> = (0..64).map(packets_until_detection).collect();
    let most = *needed.iter().max().expect("64 runs");
    let mean = needed.iter().sum::<u64>() / 64;
    println!("packets until detection: mean {mean}, most {most}");
    assert!(mean <= 3 * INITIAL_WINDOW, "mean {mean}: {needed:?}");
    assert!(most <= 8 * INITIAL_WINDOW, "most {most}: {needed:?}");
}

/// A client that can predict the skipped number omits it from its acknowledgements.
#[test]
fn skipped_number_differs_between_connections() {
    let skipped: std::collections::BTreeSet<u64> = (0..64)
        .map(|seed| {
            connected(seed)
                .server
                .connection()
                .packets
                .recovery
                .skip_at()
        })
        .collect();
    assert!(skipped.len() >= 8, "{skipped:?}");
}

/// Ends a connection over which a server has sent 2 MB. Returns what it remembers of the path.
fn remembered(end: impl FnOnce(&mut Pair)) -> usize {
    let memory = Arc::new(PathMemory::new());
    let mut setup = Setup::default();
    setup.server.transport = Arc::new(TransportConfig {
        path_memory: Some(Arc::clone(&memory)),
        ..steady()
    });
    let mut pair = Pair::with(setup);
    pair.connect();
    let mut transfer = Transfer::down(&mut pair, 2_000_000);
    while !transfer.step(&mut pair) {
        pair.run_for(RTT / 4);
    }
    end(&mut pair);
    memory.len()
}

/// Later connections must not start with a forged capacity (attack A190).
#[test]
fn path_of_a_peer_that_breaks_a_rule_is_not_remembered() {
    let of_honest_clients = remembered(|pair| {
        let now = pair.now;
        pair.server.connection().close(now, 0, b"");
    });
    assert_eq!(of_honest_clients, 1);
    let of_others_with_errors = remembered(|pair| {
        let code = TransportErrorCode::AEAD_LIMIT_REACHED;
        let now = pair.now;
        let error = TransportError::new(code, "not caused by the client");
        pair.server.connection().end(now, error);
    });
    assert_eq!(of_others_with_errors, 1);
    let of_liars = remembered(|pair| {
        let next = next_number(&mut pair.server);
        pair.forge_to_server(SpaceId::Application, &ack(next + 1000, 0));
        assert_eq!(pair.server_error(), Some(0x0a), "PROTOCOL_VIOLATION");
    });
    assert_eq!(of_liars, 0);
}
