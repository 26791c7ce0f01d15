//! The latency spin bit on the wire. RFC 9000 §17.4.

use courser_wire::packet::{self, PacketKind, short::spin_bit};

use super::*;
use crate::testing::traffic::Transfer;
use crate::testing::{Setup, steady};

/// Returns how often the spin bit of the server's packets changed during a transfer, and the round
/// trips that it took.
fn edges(seed: u8, spin_bit: bool) -> (usize, usize) {
    let transport = TransportConfig {
        spin_bit,
        ..steady()
    };
    let mut setup = Setup {
        seed,
        client: transport.clone(),
        ..Setup::default()
    };
    setup.server.transport = Arc::new(transport);
    let mut pair = Pair::with(setup);
    pair.connect();
    pair.server.sent.clear();
    let begun = pair.now;
    let transfer = Transfer::up(&mut pair, 600_000);
    assert!(transfer.finish(&mut pair, Duration::from_secs(9)).is_some());
    let rounds = (pair.now - begun).as_nanos() / RTT.as_nanos();
    let spins: Vec<_> = pair
        .server
        .sent
        .iter()
        .filter(|it| packet::decode(&it.bytes, 0, 8).is_ok_and(|it| it.kind == PacketKind::OneRtt))
        .map(|it| self::spin_bit(it.bytes[0]))
        .collect();
    let edges = spins.windows(2).filter(|pair| pair[0] != pair[1]).count();
    (edges, usize::try_from(rounds).expect("a few"))
}

#[test]
fn spin_bit_changes_once_per_round_trip() {
    // One connection in sixteen does not take part.
    let regular = (0..8).filter(|&seed| {
        let (edges, rounds) = edges(seed, true);
        assert!(rounds >= 3, "seed {seed}: {rounds}");
        edges.abs_diff(rounds) <= 1
    });
    assert!(regular.count() >= 5);
}

#[test]
fn spin_bit_is_0_by_default() {
    assert_eq!(edges(1, false).0, 0);
}
