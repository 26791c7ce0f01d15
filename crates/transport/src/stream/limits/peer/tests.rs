use courser_wire::TransportErrorCode;
use proptest::prelude::*;

use super::*;

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

#[test]
fn window_above_what_ids_allow_is_cut() {
    assert_eq!(PeerStreams::new(u64::MAX).announce(Time::ZERO), MAX_STREAMS);
}

#[test]
fn higher_number_opens_the_lower_ones_without_listing_them() {
    let mut peer = PeerStreams::new(100);
    assert_eq!(peer.on_use(99), Ok(Use::New));
    assert_eq!(peer.implied.len(), 1);
    assert_eq!(peer.count(), 100);
    assert_eq!(peer.on_use(99), Ok(Use::Known));
    assert_eq!(peer.on_use(50), Ok(Use::New));
    assert_eq!(peer.on_use(50), Ok(Use::Known));
    for index in 0..100 {
        let usage = if index == 50 || index == 99 {
            Use::Known
        } else {
            Use::New
        };
        assert_eq!(peer.accept(), Some((index, usage)));
    }
    assert_eq!(peer.accept(), None);
    assert!(peer.implied.is_empty());
}

#[test]
fn number_at_the_limit_is_an_error() {
    let mut peer = PeerStreams::new(3);
    let error = peer.on_use(3).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::STREAM_LIMIT_ERROR);
    assert_eq!(peer.count(), 0);
    assert!(PeerStreams::new(0).on_use(0).is_err());
}

#[test]
fn application_is_notified_once_until_it_accepts() {
    let mut peer = PeerStreams::new(100);
    assert!(!peer.take_opened());
    peer.on_use(0).unwrap();
    assert!(peer.take_opened());
    peer.on_use(1).unwrap();
    assert!(!peer.take_opened());
    while peer.accept().is_some() {}
    assert!(!peer.take_opened());
    peer.on_use(2).unwrap();
    assert!(peer.take_opened());
}

#[test]
fn credit_is_due_in_eighths_or_when_peer_has_little_left() {
    let mut peer = PeerStreams::new(80);
    peer.on_use(19).unwrap();
    for _ in 0..9 {
        peer.on_retired(at(0), false);
    }
    assert!(!peer.is_update_due());
    peer.on_retired(at(0), false);
    assert!(peer.is_update_due());
    assert_eq!(peer.announce(Time::ZERO), 90);
    assert!(!peer.is_update_due());
    peer.on_use(79).unwrap();
    peer.on_retired(at(0), false);
    assert!(peer.is_update_due(), "10 left, 1 free");
    assert_eq!(peer.announce(Time::ZERO), 91);
}

#[test]
fn limit_of_one_is_renewed_at_once() {
    let mut peer = PeerStreams::new(1);
    peer.on_use(0).unwrap();
    assert!(!peer.is_update_due());
    peer.on_retired(at(0), false);
    assert!(peer.is_update_due());
    assert_eq!(peer.announce(Time::ZERO), 2);
}

#[test]
fn cancelled_streams_are_credited_at_most_100_per_100_ms() {
    let mut peer = PeerStreams::new(500);
    peer.on_use(399).unwrap();
    for _ in 0..250 {
        peer.on_retired(at(1000), true);
    }
    assert_eq!(peer.announce(Time::ZERO), 600);
    assert_eq!(peer.next_timeout(), Some(at(1100)));
    assert_eq!(peer.count(), 150);
    // A stream that ends normally does not wait behind the cancelled ones.
    peer.on_retired(at(1001), false);
    assert_eq!(peer.announce(Time::ZERO), 601);
    peer.on_timeout(at(1099));
    assert_eq!(peer.announce(Time::ZERO), 601);
    peer.on_timeout(at(1100));
    assert_eq!(peer.announce(Time::ZERO), 701);
    peer.on_retired(at(1100), true);
    peer.on_timeout(at(1200));
    assert_eq!(peer.announce(Time::ZERO), 752);
    assert_eq!(peer.next_timeout(), None);
}

/// K15: the number of cancelled streams that are credited within a second.
fn credited_in_a_second(peer: &mut PeerStreams, begin: u64) -> u64 {
    let before = peer.announce(Time::ZERO);
    for step in 0..10 {
        peer.on_timeout(at(begin + 100 * step));
    }
    peer.announce(Time::ZERO) - before
}

#[test]
fn peers_that_only_cancel_get_a_fifth_of_the_credit() {
    let mut peer = PeerStreams::new(100_000);
    peer.on_use(99_999).unwrap();
    (0..50_000).for_each(|_| peer.on_retired(at(1000), true));
    // 100 of the 800 were credited above.
    assert_eq!(credited_in_a_second(&mut peer, 1100), 7 * 100 + 40 + 2 * 20);
    assert_eq!(credited_in_a_second(&mut peer, 2100), 200);
    assert_eq!(credited_in_a_second(&mut peer, 3100), 200);
    // A stream that was completed pays for four.
    (0..1000).for_each(|_| peer.on_retired(at(4000), false));
    for second in 4..8 {
        assert_eq!(credited_in_a_second(&mut peer, 1000 * second + 100), 1000);
    }
    assert!(credited_in_a_second(&mut peer, 8100) < 250);
}

/// K15: a search field that sends a new request for each key press.
#[test]
fn peers_that_cancel_fifty_streams_a_second_are_never_slowed_down() {
    let mut peer = PeerStreams::new(100);
    for number in 0..50_000 {
        peer.on_use(number).unwrap();
        let before = peer.announce(Time::ZERO);
        peer.on_retired(at(1000 + 20 * number), true);
        assert_eq!(peer.announce(Time::ZERO), before + 1, "stream {number}");
    }
}

proptest! {
    /// The peer never has more streams open than the window, and streams are accepted in order.
    #[test]
    fn open_streams_stay_within_the_window(
        window in 1u64..40,
        steps in prop::collection::vec((0u64..8, 0u8..4), 1..200),
    ) {
        let mut peer = PeerStreams::new(window);
        let (mut next, mut expected, mut open) = (0, 0, 0u64);
        for (amount, what) in steps {
            match what {
                0 | 1 => {
                    let index = next + amount;
                    match peer.on_use(index) {
                        Ok(usage) => {
                            prop_assert_eq!(usage, Use::New);
                            open += index + 1 - next;
                            next = index + 1;
                        }
                        Err(_) => prop_assert!(index >= peer.announced),
                    }
                }
                2 => {
                    if let Some((index, _)) = peer.accept() {
                        prop_assert_eq!(index, expected);
                        expected += 1;
                    }
                }
                _ => {
                    if open > 0 {
                        open -= 1;
                        peer.on_retired(at(0), false);
                        if peer.is_update_due() {
                            peer.announce(Time::ZERO);
                        }
                    }
                }
            }
            prop_assert_eq!(peer.count(), open);
            prop_assert!(open <= window);
        }
    }
}
