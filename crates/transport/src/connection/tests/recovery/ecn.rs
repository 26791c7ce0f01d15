//! Tests ECN marks, and networks that corrupt them. RFC 9000 §13.4, RFC 9002 §7.1.

use super::*;

#[test]
fn congestion_marks_lower_the_window_without_loss() {
    let mut pair = connected(|_| {});
    pair.upload(100_000);
    let before = pair.client.connection().stats();
    let mut count = 0;
    pair.link.filter = Some(Box::new(move |_, datagram| {
        count += 1;
        if count % 20 == 0 && datagram.ecn == Ecn::Ect0 && datagram.to.port() == 4433 {
            datagram.ecn = Ecn::Ce;
        }
        true
    }));
    pair.upload(1_000_000);
    let after = pair.client.connection().stats();
    assert!(after.congestion_events > before.congestion_events + 2);
    assert_eq!(after.packets_lost, before.packets_lost);
    assert!(pair.server.connection().stats().ce_received > 5);
    let mut free = connected(|_| {});
    free.upload(1_100_000);
    let unmarked = free.client.connection().stats().path.congestion_window;
    assert!(
        after.path.congestion_window < unmarked / 2,
        "{} and {unmarked}",
        after.path.congestion_window
    );
}

#[test]
fn marking_stops_if_marks_are_corrupted() {
    // Attack A45, fault F16: cleared, swapped and invented marks.
    for name in ["bleached", "swapped"] {
        let mut pair = Pair::with(both(|_| {}));
        pair.link.filter = Some(Box::new(move |_, datagram| {
            datagram.ecn = match datagram.ecn {
                Ecn::Ect0 if name == "swapped" => Ecn::Ect1,
                _ => Ecn::NotEct,
            };
            true
        }));
        pair.connect();
        pair.upload(200_000);
        let last = pair.client.sent.iter().rev().take(20);
        assert!(last.into_iter().all(|it| it.ecn == Ecn::NotEct), "{name}");
    }
}

#[test]
fn path_that_drops_marked_datagrams_is_usable() {
    let mut pair = Pair::with(both(|_| {}));
    pair.link.filter = Some(Box::new(|_, datagram| datagram.ecn == Ecn::NotEct));
    pair.connect();
    pair.upload(50_000);
}

#[test]
fn transfer_with_all_packets_marked_as_congested_completes() {
    let mut pair = connected(|_| {});
    pair.link.filter = Some(Box::new(|_, datagram| {
        datagram.ecn = if datagram.ecn == Ecn::Ect0 {
            Ecn::Ce
        } else {
            datagram.ecn
        };
        true
    }));
    pair.upload(100_000);
    assert!(pair.client.connection().stats().path.congestion_window < 14_720);
}

#[test]
fn disabled_ecn_sends_no_marks() {
    let mut pair = connected(|config| config.ecn = false);
    pair.upload(50_000);
    assert!(
        pair.client
            .sent
            .iter()
            .chain(&pair.server.sent)
            .all(|it| it.ecn == Ecn::NotEct)
    );
}
