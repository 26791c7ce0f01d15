//! Packets that are late but not lost. RFC 9002 §6.1.1, §6.1.2.

use super::*;

/// Creates a pair at 1 MB/s whose path delays `reorder` of a thousand datagrams by up to half a
/// round trip.
fn reordering(reorder: u32) -> Pair {
    let mut pair = connected(|_| {});
    pair.link.rate = Some(1_000_000);
    pair.link.reorder = reorder;
    pair
}

#[test]
fn thresholds_adapt_to_a_path_that_reorders() {
    let mut pair = reordering(50);
    let transfer = Transfer::up(&mut pair, 4_000_000);
    let took = transfer.finish(&mut pair, Duration::from_secs(60));
    let stats = pair.client.connection().stats();
    // No packet was lost, so all losses turned out to be spurious. Afterwards the thresholds are
    // adapted to the path.
    assert_eq!(stats.packets_lost, stats.packets_spuriously_lost);
    assert!(
        stats.packets_lost > 0,
        "the first late packets are declared lost"
    );
    assert!(stats.packets_lost < 30, "{stats:?}");
    let took = took.expect("all arrives");
    assert!(took < Duration::from_millis(5000), "{took:?}");
    assert!(pair.client.connection().packets.recovery.packet_threshold() > 3);
}

#[test]
fn genuine_losses_are_not_counted_as_spurious() {
    let mut pair = connected(|_| {});
    pair.link.loss = 20;
    let transfer = Transfer::up(&mut pair, 1_000_000);
    assert!(
        transfer
            .finish(&mut pair, Duration::from_secs(60))
            .is_some()
    );
    let stats = pair.client.connection().stats();
    assert!(stats.packets_lost > 5);
    assert_eq!(stats.packets_spuriously_lost, 0);
    assert_eq!(
        pair.client.connection().packets.recovery.packet_threshold(),
        3
    );
}

#[test]
fn lost_packets_are_forgotten_after_a_while() {
    let mut pair = connected(|_| {});
    pair.link.loss = 300;
    let transfer = Transfer::up(&mut pair, 200_000);
    assert!(
        transfer
            .finish(&mut pair, Duration::from_secs(60))
            .is_some()
    );
    pair.link.loss = 0;
    pair.run_for(Duration::from_secs(5));
    write(&mut pair, b"one more");
    pair.run_for(Duration::from_secs(1));
    let connection = pair.client.connection();
    assert!(!connection.packets.recovery.remembers_losses());
}

#[test]
fn delivery_rate_is_that_of_the_link() {
    let mut pair = reordering(0);
    let transfer = Transfer::up(&mut pair, 3_000_000);
    assert!(
        transfer
            .finish(&mut pair, Duration::from_secs(60))
            .is_some()
    );
    pair.run_for(Duration::from_secs(1));
    let path = pair.client.connection().packets.recovery.path();
    let delivery = path.delivery();
    assert!(delivery.delivered() >= 3_000_000, "{path:?}");
    assert!(delivery.memory() < 4096, "nothing is in flight");
}
