mod invariants;
mod links;
pub(super) mod model;
pub(super) mod network;
mod response;
mod undo;

use std::time::Duration;

use courser_base::{Rate, Time};
use proptest::prelude::*;

use super::*;
use crate::rtt::RttEstimator;

pub(super) const MTU: u16 = 1200;

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A sender that fills the window of its controller, round by round.
#[derive(Debug)]
pub(super) struct Flow<C> {
    pub(super) controller: C,
    pub(super) now: Time,
    pub(super) rtt: RttEstimator,
    pub(super) next_pn: u64,
    pub(super) app_limited: bool,
    delivered: u64,
}

/// An acknowledgement without content. Tests set the fields that they need.
pub(super) fn blank_ack(rtt: &RttEstimator) -> AckSample<'_> {
    AckSample {
        now: Time::ZERO,
        acked_bytes: 0,
        largest_acked: 0,
        largest_acked_sent: Time::ZERO,
        earliest_acked_sent: Time::ZERO,
        rtt,
        rtt_sample: None,
        app_limited: false,
        bytes_in_flight_before: 0,
        bytes_in_flight: 0,
        lost_bytes: 0,
        delivered: 0,
        rate: None,
        ecn_capable_packets: 0,
        ce_packets: 0,
    }
}

impl<C: Controller> Flow<C> {
    pub(super) fn new(controller: C) -> Self {
        let now = Time::ZERO + ms(1);
        Self {
            controller,
            now,
            rtt: RttEstimator::default(),
            next_pn: 0,
            app_limited: false,
            delivered: 0,
        }
    }

    /// Sends a window, which is acknowledged after `rtt` in `acks` parts.
    pub(super) fn round(&mut self, rtt: Duration, acks: u64) {
        let window = self.controller.window();
        let sent_at = self.now;
        let first_pn = self.next_pn;
        self.next_pn += acks;
        self.controller
            .on_sent(self.now, window, self.next_pn - 1, window);
        self.now += rtt;
        for ack in 0..acks {
            let bytes = window * (ack + 1) / acks - window * ack / acks;
            self.ack(sent_at, first_pn + ack, bytes);
        }
    }

    /// Sends a window over half of `rtt`, which is acknowledged over `spread`, each part at least
    /// `rtt` after it was sent.
    pub(super) fn paced_round(&mut self, rtt: Duration, spread: Duration, acks: u64) {
        let window = self.controller.window();
        let began = self.now;
        let first_pn = self.next_pn;
        self.next_pn += acks;
        self.controller
            .on_sent(began, window, self.next_pn - 1, window);
        for ack in 0..acks {
            let part = ack as f64 / acks as f64;
            self.now = began + rtt + spread.mul_f64(part);
            let bytes = window * (ack + 1) / acks - window * ack / acks;
            self.ack(began + (rtt / 2).mul_f64(part), first_pn + ack, bytes);
        }
        self.now = self.now.max(began + rtt + rtt / 2);
    }

    pub(super) fn rounds(&mut self, count: usize, rtt: Duration, acks: u64) {
        (0..count).for_each(|_| self.round(rtt, acks));
    }

    pub(super) fn ack(&mut self, sent_at: Time, pn: u64, bytes: u64) {
        let sample = self.now - sent_at;
        self.delivered += bytes;
        self.rtt.on_sample(self.now, sample, Duration::ZERO, None);
        self.controller.on_ack(&AckSample {
            now: self.now,
            acked_bytes: bytes,
            largest_acked: pn,
            largest_acked_sent: sent_at,
            earliest_acked_sent: sent_at,
            rtt_sample: Some(sample),
            app_limited: self.app_limited,
            bytes_in_flight_before: self.controller.window(),
            bytes_in_flight: self.controller.window().saturating_sub(bytes),
            delivered: self.delivered,
            ..blank_ack(&self.rtt)
        });
    }

    /// Declares a packet lost that was sent at the present time.
    pub(super) fn lose(&mut self) {
        self.lose_sent_at(self.now, false);
        self.now += Duration::from_nanos(1);
    }

    pub(super) fn lose_sent_at(&mut self, sent: Time, persistent: bool) {
        self.controller.on_congestion(&LossSample {
            now: self.now,
            lost_bytes: u64::from(MTU),
            largest_lost_sent: sent,
            persistent,
            is_ecn: false,
            bytes_in_flight: self.controller.window(),
            packets: &[],
        });
    }
}

/// The controllers that respond to loss as in RFC 9002 and RFC 9438, Prague while there are no
/// marks.
fn all() -> [CongestionController; 3] {
    [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Prague]
        .map(|name| CongestionController::new(name, MTU, 1))
}

fn both() -> [CongestionController; 2] {
    [Algorithm::NewReno, Algorithm::Cubic].map(|name| CongestionController::new(name, MTU, 1))
}

/// RFC 9002 §7.2.
#[test]
fn initial_window_is_ten_datagrams_within_bounds() {
    assert_eq!(initial_window(1200), 12_000);
    assert_eq!(initial_window(1472), 14_720);
    assert_eq!(initial_window(1500), 14_720);
    assert_eq!(initial_window(9000), 18_000);
    for controller in all() {
        assert_eq!(controller.window(), 12_000, "{}", controller.name());
        assert_eq!(controller.ssthresh(), None, "{}", controller.name());
    }
}

/// RFC 9002 §7.3.1.
#[test]
fn slow_start_adds_acknowledged_bytes() {
    for controller in all() {
        let mut flow = Flow::new(controller);
        flow.round(ms(50), 4);
        assert_eq!(
            flow.controller.window(),
            24_000,
            "{}",
            flow.controller.name()
        );
        assert!(
            flow.controller.in_slow_start(),
            "{}",
            flow.controller.name()
        );
    }
}

/// RFC 9002 §7.3.1.
#[test]
fn loss_and_ce_end_slow_start() {
    for is_ecn in [false, true] {
        for mut controller in both() {
            controller.on_congestion(&LossSample {
                now: Time::ZERO,
                lost_bytes: 0,
                largest_lost_sent: Time::ZERO,
                persistent: false,
                is_ecn,
                bytes_in_flight: 12_000,
                packets: &[],
            });
            assert!(!controller.in_slow_start(), "{}", controller.name());
            assert_eq!(
                controller.ssthresh(),
                Some(controller.window()),
                "{}",
                controller.name()
            );
        }
    }
}

/// RFC 9002 §7.3.2.
#[test]
fn one_reduction_per_recovery_period() {
    for controller in all() {
        let mut flow = Flow::new(controller);
        flow.rounds(4, ms(50), 4);
        let sent = flow.now;
        flow.now += ms(10);
        flow.lose_sent_at(sent, false);
        let reduced = flow.controller.window();
        flow.now += ms(10);
        flow.lose_sent_at(sent + ms(10), false);
        assert_eq!(
            flow.controller.window(),
            reduced,
            "{}",
            flow.controller.name()
        );
        flow.lose_sent_at(sent + ms(11), false);
        assert!(
            flow.controller.window() < reduced,
            "{}",
            flow.controller.name()
        );
    }
}

/// After slow start, packets sent while more than the reduced window is in flight meet the queue of
/// the window before.
#[test]
fn a_reduction_after_slow_start_takes_effect_before_the_next_one() {
    for controller in all() {
        let name = controller.name();
        let mut flow = Flow::new(controller);
        flow.rounds(4, ms(50), 4);
        // Sends a packet with this much in flight, which is lost. Returns true if the window is
        // reduced.
        let reduces = |flow: &mut Flow<CongestionController>, in_flight: u64| {
            let before = flow.controller.window();
            flow.now += ms(1);
            flow.next_pn += 1;
            let (now, pn) = (flow.now, flow.next_pn);
            flow.controller.on_sent(now, u64::from(MTU), pn, in_flight);
            flow.lose_sent_at(now, false);
            flow.controller.window() < before
        };
        let flight = flow.controller.window();
        assert!(reduces(&mut flow, flight), "{name}");
        let reduced = flow.controller.window();
        assert!(!reduces(&mut flow, reduced + 1), "{name}");
        assert!(
            reduces(&mut flow, reduced),
            "{name}: the reduction was in effect"
        );
        // After a round trip without congestion, each reduction counts as in RFC 9002.
        flow.now += ms(1);
        flow.rounds(3, ms(50), 4);
        let flight = flow.controller.window();
        assert!(reduces(&mut flow, flight), "{name}");
        let reduced = flow.controller.window();
        assert!(reduces(&mut flow, reduced + 1), "{name}");
    }
}

/// RFC 9002 appendix B.5.
#[test]
fn packets_sent_before_the_reduction_do_not_grow_the_window() {
    for controller in all() {
        let mut flow = Flow::new(controller);
        flow.rounds(4, ms(50), 4);
        let sent = flow.now;
        flow.now += ms(50);
        flow.lose_sent_at(sent, false);
        let reduced = flow.controller.window();
        flow.ack(sent, 1000, 100_000);
        assert_eq!(
            flow.controller.window(),
            reduced,
            "{}",
            flow.controller.name()
        );
    }
}

/// RFC 9002 §7.6.2.
#[test]
fn persistent_congestion_sets_a_window_of_two_datagrams_and_slow_start() {
    for controller in all() {
        let mut flow = Flow::new(controller);
        flow.rounds(5, ms(50), 4);
        let before = flow.controller.window();
        flow.lose_sent_at(flow.now, true);
        assert_eq!(flow.controller.window(), 2400, "{}", flow.controller.name());
        let ssthresh = flow.controller.ssthresh().unwrap();
        assert!(
            (before / 2..before).contains(&ssthresh),
            "{}",
            flow.controller.name()
        );
        assert!(flow.controller.in_slow_start());
        flow.now += ms(1);
        flow.round(ms(50), 2);
        assert_eq!(flow.controller.window(), 4800, "{}", flow.controller.name());
    }
}

#[test]
fn slow_start_after_persistent_congestion_stops_at_ssthresh() {
    for controller in all() {
        let mut flow = Flow::new(controller);
        flow.rounds(5, ms(50), 4);
        flow.lose_sent_at(flow.now, true);
        flow.now += ms(1);
        while flow.controller.in_slow_start() {
            flow.round(ms(50), 1);
        }
        assert_eq!(Some(flow.controller.window()), flow.controller.ssthresh());
    }
}

/// RFC 9002 §7.8.
#[test]
fn unused_windows_do_not_grow() {
    for controller in all() {
        let mut flow = Flow::new(controller);
        flow.app_limited = true;
        flow.rounds(10, ms(50), 10);
        assert_eq!(
            flow.controller.window(),
            12_000,
            "{}",
            flow.controller.name()
        );
        flow.lose();
        let window = flow.controller.window();
        flow.rounds(100, ms(50), 10);
        assert_eq!(
            flow.controller.window(),
            window,
            "{}",
            flow.controller.name()
        );
    }
}

/// RFC 9002 §7.2.
#[test]
fn a_fresh_controller_takes_the_initial_window_of_a_new_mtu() {
    for mut controller in all() {
        controller.on_mtu_update(1400);
        assert_eq!(controller.window(), 14_000, "{}", controller.name());
        let mut flow = Flow::new(controller);
        flow.lose_sent_at(flow.now, true);
        flow.controller.on_mtu_update(9000);
        assert_eq!(
            flow.controller.window(),
            18_000,
            "{}",
            flow.controller.name()
        );
    }
}

#[test]
fn configured_window_is_the_first_one_and_slow_start_begins_there() {
    for &algorithm in Algorithm::ALL {
        for window in [6_000, 100_000, 1 << 30] {
            let controller = CongestionController::with_window(algorithm, MTU, 1, window);
            assert_eq!(controller.window(), window, "{algorithm}");
            assert!(controller.in_slow_start(), "{algorithm}");
            let mut flow = Flow::new(controller);
            flow.round(ms(50), 1);
            // BBR grows by samples of the rate, which these acknowledgements do not have.
            let grows = flow.controller.window() > window || algorithm == Algorithm::Bbr;
            assert!(grows, "{algorithm}, {window}");
        }
        let least = CongestionController::with_window(algorithm, MTU, 1, 0);
        assert!(least.window() >= minimum_window(MTU), "{algorithm}");
    }
}

/// RFC 9002 §7.7.
#[test]
fn pacing_is_faster_than_the_window_and_twice_as_fast_in_slow_start() {
    let mut rtt = RttEstimator::default();
    rtt.on_sample(Time::ZERO, ms(100), Duration::ZERO, None);
    for controller in all() {
        let mut flow = Flow::new(controller);
        let rate = |flow: &Flow<CongestionController>| {
            flow.controller
                .pacing_rate(&rtt)
                .map(Rate::as_bytes_per_second)
        };
        assert_eq!(rate(&flow), Some(2 * 120_000));
        flow.lose();
        assert_eq!(rate(&flow), Some(flow.controller.window() * 10 * 5 / 4));
    }
}

#[test]
fn algorithms_have_names() {
    for &algorithm in Algorithm::ALL {
        let name = algorithm.to_string();
        assert_eq!(name.parse(), Ok(algorithm));
        let controller = CongestionController::new(algorithm, MTU, 1);
        assert_eq!(controller.name(), name);
        assert_eq!(controller.algorithm(), Some(algorithm), "{name}");
    }
    assert_eq!("bbr3".parse(), Ok(Algorithm::Bbr));
    assert_eq!("bbrv3".parse(), Ok(Algorithm::Bbr));
    let error = "vegas".parse::<Algorithm>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown controller 'vegas', known are newreno, cubic, bbr, prague"
    );
}

#[test]
fn custom_controllers_are_called() {
    let inner = Box::new(NewReno::new(MTU));
    let mut flow = Flow::new(CongestionController::custom(inner));
    flow.round(ms(50), 1);
    assert_eq!(flow.controller.window(), 24_000);
}
