use proptest::prelude::*;

use super::super::controller::Controller;
use super::super::tests::{MTU, ms};
use super::*;
use crate::{RttEstimator, SpuriousLoss};
use std::time::Duration;

/// A flow with one acknowledgement per round trip.
struct Flow {
    prague: Prague,
    rtt: RttEstimator,
    now: Time,
    pn: u64,
}

impl Flow {
    fn new() -> Self {
        Self {
            prague: Prague::new(MTU),
            rtt: RttEstimator::default(),
            now: Time::ZERO + ms(1),
            pn: 0,
        }
    }

    /// Sends a window of a hundred packets, of which `marked` are marked.
    fn round(&mut self, rtt: Duration, marked: u64) {
        self.now += Duration::from_nanos(1);
        let (sent, window) = (self.now, self.prague.window());
        self.pn += 100;
        self.prague.on_sent(sent, window, self.pn, window);
        self.now += rtt;
        if marked > 0 {
            self.congestion(sent, 0, true);
        }
        self.rtt.on_sample(self.now, rtt, Duration::ZERO, None);
        self.prague.on_ack(&AckSample {
            now: self.now,
            acked_bytes: window,
            largest_acked: self.pn,
            largest_acked_sent: sent,
            earliest_acked_sent: sent,
            rtt: &self.rtt,
            rtt_sample: Some(rtt),
            app_limited: false,
            bytes_in_flight_before: window,
            bytes_in_flight: 0,
            lost_bytes: 0,
            delivered: 0,
            rate: None,
            ecn_capable_packets: 100,
            ce_packets: marked,
        });
    }

    /// Acknowledges some bytes of a longer flight.
    fn acknowledge(&mut self, acked_bytes: u64) {
        let sent = self.now;
        self.now += ms(30);
        self.pn += 1;
        self.prague.on_ack(&AckSample {
            now: self.now,
            acked_bytes,
            largest_acked: self.pn,
            largest_acked_sent: sent,
            earliest_acked_sent: sent,
            rtt: &self.rtt,
            rtt_sample: None,
            app_limited: false,
            bytes_in_flight_before: self.prague.window(),
            bytes_in_flight: self.prague.window() - acked_bytes,
            lost_bytes: 0,
            delivered: 0,
            rate: None,
            ecn_capable_packets: 10,
            ce_packets: 0,
        });
    }

    fn congestion(&mut self, sent: Time, lost_bytes: u64, is_ecn: bool) {
        self.prague.on_congestion(&LossSample {
            now: self.now,
            lost_bytes,
            largest_lost_sent: sent,
            persistent: false,
            is_ecn,
            bytes_in_flight: self.prague.window(),
            packets: &[],
        });
    }

    fn lose(&mut self) {
        self.now += Duration::from_nanos(1);
        self.congestion(self.now, u64::from(MTU), false);
        self.now += Duration::from_nanos(1);
    }

    /// Returns a flow past slow start, whose `alpha` was measured to be `share` in a hundred.
    fn settled(rtt: Duration, share: u64) -> Self {
        let mut flow = Self::new();
        (0..5).for_each(|_| flow.round(rtt, 0));
        (0..200).for_each(|_| flow.round(rtt, share));
        flow
    }
}

/// A whole window may be in flight in addition to the bytes that the receiver withholds. These are
/// at most a quarter of the window, even if one acknowledgement covers all of it.
#[test]
fn bytes_withheld_by_aggregated_acknowledgements_extend_the_window() {
    let mut flow = Flow::settled(ms(30), 1);
    let window = flow.prague.window();
    let most = window + window / 4;
    assert!(flow.prague.room(most - 2) > 0);
    assert_eq!(flow.prague.room(most), 0);

    let batch = window / 10;
    for _ in 0..200 {
        flow.acknowledge(batch);
    }
    let room = flow.prague.room(flow.prague.window());
    assert_eq!(room, batch - 2 * u64::from(MTU));
}

/// RFC 9331 §4.1.
#[test]
fn packets_are_marked_as_l4s() {
    assert_eq!(Prague::new(MTU).ecn_codepoint(), Ecn::Ect1);
}

/// Draft §2.3.2, §2.4.5.
#[test]
fn the_first_mark_ends_slow_start_and_halves_the_window() {
    let mut flow = Flow::new();
    (0..5).for_each(|_| flow.round(ms(50), 0));
    let before = flow.prague.window();
    assert!(flow.prague.in_slow_start());
    flow.now += ms(1);
    flow.congestion(flow.now, 0, true);
    assert_eq!(flow.prague.window(), before / 2);
    assert!(!flow.prague.in_slow_start());
    assert_eq!(flow.prague.alpha(), Some(1.0));
    assert_eq!(flow.prague.state(), "recovery");
}

/// Draft §2.3.2: a weight of a sixteenth.
#[test]
fn alpha_approaches_the_share_of_marks() {
    let mut flow = Flow::new();
    flow.round(ms(50), 0);
    flow.congestion(flow.now, 0, true);
    let mut expected = 1.0;
    for round in 0..100 {
        flow.round(ms(50), 20);
        expected += (0.2 - expected) / 16.0;
        let alpha = flow.prague.alpha().unwrap();
        assert!((alpha - expected).abs() < 1e-9, "round {round}: {alpha}");
    }
}

/// Draft §2.4.2.
#[test]
fn marks_reduce_the_window_by_half_of_alpha_once_a_round_trip() {
    let mut flow = Flow::settled(ms(50), 10);
    let (alpha, before) = (flow.prague.alpha().unwrap(), flow.prague.window() as f64);
    assert!((alpha - 0.1).abs() < 0.01, "{alpha}");
    flow.now += ms(1);
    let sent = flow.now;
    flow.congestion(sent, 0, true);
    let after = flow.prague.window() as f64;
    assert!((after / before - (1.0 - alpha / 2.0)).abs() < 0.001);
    flow.now += ms(10);
    flow.congestion(sent, 0, true);
    assert_eq!(flow.prague.window() as f64, after, "the same round trip");
}

/// Draft §2.4.3.
#[test]
fn unmarked_bytes_add_a_datagram_a_round_trip() {
    let mut flow = Flow::settled(ms(50), 10);
    flow.round(ms(50), 0);
    let before = flow.prague.window();
    flow.round(ms(50), 0);
    assert!(flow.prague.window().abs_diff(before + u64::from(MTU)) <= 1);
}

/// Draft §2.4.4: beyond 500 round trips, the growth per second is that of 25 ms.
#[test]
fn short_round_trips_grow_as_if_they_were_longer() {
    let growth = |rtt: Duration| {
        let mut flow = Flow::settled(rtt, 40);
        (0..600).for_each(|_| flow.round(rtt, 40));
        // Fewer rounds than those after which growth doubles.
        (0..2).for_each(|_| flow.round(rtt, 0));
        let before = flow.prague.window() as f64;
        flow.round(rtt, 0);
        (flow.prague.window() as f64 - before) / f64::from(MTU)
    };
    assert!((growth(ms(5)) - 0.04).abs() < 0.01, "{}", growth(ms(5)));
    assert!((growth(ms(25)) - 1.0).abs() < 0.01, "{}", growth(ms(25)));
    assert!((growth(ms(60)) - 1.0).abs() < 0.01, "{}", growth(ms(60)));
}

/// Draft §2.4.4: beyond 500 round trips, responses are no more frequent than with 25 ms.
#[test]
fn short_round_trips_respond_to_marks_once_in_25_ms() {
    let mut flow = Flow::settled(ms(5), 40);
    (0..600).for_each(|_| flow.round(ms(5), 40));
    let falls = |flow: &mut Flow, rounds: u64| {
        let mut falls = 0;
        for _ in 0..rounds {
            let before = flow.prague.window();
            flow.round(ms(5), 40);
            falls += u64::from(flow.prague.window() < before);
        }
        falls
    };
    assert!(falls(&mut flow, 50) <= 10);
}

/// Draft §2.4.1.
#[test]
fn response_to_loss_is_that_of_cubic_and_can_be_undone() {
    let mut flow = Flow::settled(ms(50), 10);
    let before = flow.prague.window();
    let lost_at = flow.now + Duration::from_nanos(1);
    flow.lose();
    let part = flow.prague.window() as f64 / before as f64;
    assert!((part - 0.7).abs() < 0.001, "{part}");
    assert!(
        flow.prague.alpha().is_some(),
        "the scalable law still applies"
    );
    flow.prague.on_spurious_loss(&SpuriousLoss {
        now: flow.now,
        bytes: u64::from(MTU),
        sent: lost_at,
        lost_at,
    });
    assert_eq!(flow.prague.window(), before);
}

/// Draft §2.4.1: a reduction for marks in the same round trip counts.
#[test]
fn reduction_for_a_mark_counts_towards_that_for_a_loss() {
    let mut flow = Flow::settled(ms(50), 40);
    flow.now += ms(1);
    let (sent, before) = (flow.now, flow.prague.window());
    flow.congestion(sent, 0, true);
    flow.now += ms(1);
    flow.congestion(sent, u64::from(MTU), false);
    let part = flow.prague.window() as f64 / before as f64;
    assert!((part - 0.7).abs() < 0.001, "{part}");
}

#[test]
fn two_losses_without_a_mark_between_them_return_to_cubic() {
    let mut flow = Flow::settled(ms(50), 10);
    flow.lose();
    (0..3).for_each(|_| flow.round(ms(50), 0));
    let before = flow.prague.window();
    flow.lose();
    assert_eq!(flow.prague.alpha(), None);
    let part = flow.prague.window() as f64 / before as f64;
    assert!((part - 0.7).abs() < 0.001, "{part}");
    flow.round(ms(50), 0);
    flow.round(ms(50), 10);
    assert_eq!(
        flow.prague.alpha(),
        Some(1.0),
        "the scalable law applies again"
    );
}

/// A link that has become faster is filled again within few round trips.
#[test]
fn growth_doubles_each_round_without_marks() {
    let mut flow = Flow::settled(ms(50), 10);
    let before = flow.prague.window();
    let rounds = 60;
    (0..rounds).for_each(|_| flow.round(ms(50), 0));
    assert!(flow.prague.window() > before + 2 * rounds * u64::from(MTU));
}

/// Draft §2.5.1 and §2.5.2.
#[test]
fn packets_are_spread_over_the_round_trip() {
    let flow = Flow::settled(ms(50), 10);
    let rate = flow.prague.pacing_rate(&flow.rtt).unwrap();
    let window = rate.bytes_in(ms(50));
    assert!(window.abs_diff(flow.prague.window()) <= 1);
    assert_eq!(flow.prague.send_quantum(), Some(u64::from(MTU)));
}

proptest! {
    #[test]
    fn any_marks_leave_alpha_a_share_and_the_window_in_bounds(
        rounds in prop::collection::vec((1u64..100, 0u64..=200, prop::bool::weighted(0.1)), 1..300)
    ) {
        let mut flow = Flow::new();
        for (rtt, marked, loses) in rounds {
            flow.round(ms(rtt), marked);
            if loses {
                flow.lose();
            }
            let alpha = flow.prague.alpha().unwrap_or(0.0);
            prop_assert!((0.0..=1.0).contains(&alpha));
            prop_assert!(flow.prague.window() >= 2 * u64::from(MTU));
            prop_assert!(flow.prague.window() <= MAX_WINDOW);
        }
    }
}

/// A classic ECN queue delays every packet, for longer than an L4S queue.
#[test]
fn marks_from_a_standing_queue_return_to_cubic() {
    for (name, wait, rounds, expected) in [
        ("CoDel", 5, 8, true),
        ("CoDel, for a while", 5, 7, false),
        ("L4S", 3, 100, false),
    ] {
        let mut flow = Flow::settled(ms(40), 2);
        assert_eq!(flow.prague.ecn_codepoint(), Ecn::Ect1);
        (0..rounds).for_each(|_| flow.round(ms(40 + wait), 1));
        let before = flow.prague.window();
        flow.round(ms(40 + wait), 1);
        assert_eq!(flow.prague.alpha().is_none(), expected, "{name}");
        if !expected {
            continue;
        }
        assert_eq!(flow.prague.ecn_codepoint(), Ecn::Ect0);
        assert_eq!(flow.prague.state(), "recovery");
        assert_eq!(flow.prague.window(), (before as f64 * 0.7) as u64);
        // The response to the next mark is that to a loss.
        (0..3).for_each(|_| flow.round(ms(45), 0));
        let before = flow.prague.window();
        flow.round(ms(45), 1);
        let after = flow.prague.window();
        assert!(
            after.abs_diff(before * 7 / 10) < 2000,
            "{before} to {after}"
        );
        assert_eq!(flow.prague.alpha(), None);
    }
}

/// Rounds in which a packet has not waited, and rounds without marks, do not show a classic queue.
#[test]
fn jitter_is_not_mistaken_for_a_classic_queue() {
    let mut flow = Flow::settled(ms(40), 2);
    for round in 0..100 {
        let wait = if round % 8 == 7 { 0 } else { 20 };
        flow.round(ms(40 + wait), 1);
    }
    (0..100).for_each(|_| flow.round(ms(60), 0));
    assert!(flow.prague.alpha().is_some());
}
