//! A receiver that acknowledges packets it has not received, to make the sender faster. RFC 9000
//! §21.4, attack A23.

use super::*;
use crate::testing::Setup;
use crate::testing::traffic::Transfer;

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
            None => assert!(!transfer.step(&mut pair), "the client got away with it"),
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

/// A client that could predict the number would skip it.
#[test]
fn the_number_left_out_differs_from_connection_to_connection() {
    let skipped: std::collections::BTreeSet<u64> = (0..64)
        .map(|seed| connected(seed).server.connection().recovery.skip_at())
        .collect();
    assert!(skipped.len() >= 8, "{skipped:?}");
}
