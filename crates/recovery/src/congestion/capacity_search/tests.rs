use std::collections::VecDeque;

use courser_base::Time;

use super::super::tests::{blank_ack, ms};
use super::*;
use crate::RttEstimator;

/// A path of 40 ms that carries 100 000 bytes in a round trip, and the search of a sender that keeps
/// its window in flight.
struct Path {
    search: CapacitySearch,
    window: u64,
    rtt: RttEstimator,
    last_sent: u64,
    largest_acked: u64,
}

const CARRIED: u64 = 100_000;

impl Path {
    fn new(window: u64, bound: Option<u64>) -> Self {
        let mut rtt = RttEstimator::default();
        rtt.on_sample(Time::ZERO, ms(40), Duration::ZERO, None);
        Self {
            search: CapacitySearch::new(window, bound),
            window,
            rtt,
            last_sent: 99,
            largest_acked: 0,
        }
    }

    /// Returns the round-trip time of a packet that is sent with the present window.
    fn delay(&self) -> Duration {
        ms(40).mul_f64(self.window.max(CARRIED) as f64 / CARRIED as f64)
    }

    fn ack(&mut self, rtt: Duration) -> Progress {
        let sample = AckSample {
            acked_bytes: 10_000,
            largest_acked: self.largest_acked,
            rtt_sample: Some(rtt),
            ..blank_ack(&self.rtt)
        };
        let progress = self
            .search
            .on_ack(&sample, self.window, 2 * self.window, self.last_sent);
        match progress {
            Progress::Growing => {
                self.window = (self.window + 10_000).min(self.search.target());
            }
            Progress::FirstStepProven => {}
            Progress::Over { window } => self.window = window,
        }
        progress
    }

    /// Runs the search to its end: ten packets are acknowledged each round trip, after the delay
    /// that they met when they were sent. Returns the final and the largest window.
    fn run(&mut self) -> (u64, u64) {
        let mut sent = VecDeque::from(vec![self.delay(); 10]);
        let mut largest = 0;
        for _ in 0..200 {
            let rtt = sent.pop_front().expect("ten packets are in flight");
            self.largest_acked += 10;
            let progress = self.ack(rtt);
            largest = largest.max(self.window);
            if let Progress::Over { window } = progress {
                return (window, largest);
            }
            self.last_sent += 10;
            sent.push_back(self.delay());
        }
        panic!("the search does not end");
    }
}

#[test]
fn a_full_link_ends_the_search_at_the_initial_window() {
    let mut path = Path::new(CARRIED, None);
    assert_eq!(path.run(), (CARRIED, CARRIED * 5 / 4));
    assert!(!path.search.has_proven_step());
}

/// For any initial window, the search ends at the capacity of the path, and has never filled a
/// queue of one BDP.
#[test]
fn the_search_ends_at_the_capacity_of_the_path() {
    for window in (5..=95).step_by(5) {
        let mut path = Path::new(window * 1000, None);
        let (last, largest) = path.run();
        assert!(last >= CARRIED * 95 / 100, "{window} kB: {last}");
        assert!(last <= CARRIED * 114 / 100, "{window} kB: {last}");
        assert!(largest <= CARRIED * 17 / 10, "{window} kB: {largest}");
    }
}

#[test]
fn the_search_ends_at_the_earlier_capacity_of_the_path() {
    for bound in [71_000, 95_000] {
        let mut path = Path::new(70_000, Some(bound));
        assert_eq!(path.run(), (bound, bound));
        assert!(path.search.has_proven_step());
    }
}

/// Packets sent before the window has grown do not meet its queue.
#[test]
fn packets_sent_before_the_step_do_not_count() {
    let mut path = Path::new(CARRIED, None);
    path.last_sent = 1000;
    for pn in 0..=1000 {
        path.largest_acked = pn;
        assert_eq!(path.ack(ms(40)), Progress::Growing, "{pn}");
    }
    // Three packets that were sent later decide.
    for (pn, is_over) in [(1001, false), (1002, false), (1003, true)] {
        path.largest_acked = pn;
        let progress = path.ack(ms(50));
        assert_eq!(progress != Progress::Growing, is_over, "{pn}");
    }
    assert_eq!(path.window, CARRIED);
}

/// The fastest packet decides: 5 ms are a queue on this path.
#[test]
fn one_packet_that_has_not_waited_proves_the_step() {
    for (fastest, is_proven) in [(44, true), (45, false)] {
        let mut path = Path::new(CARRIED, None);
        for _ in 0..4 {
            path.ack(ms(40));
        }
        path.largest_acked = 100;
        path.ack(ms(90));
        path.ack(ms(fastest));
        let progress = path.ack(ms(90));
        let proven = progress == Progress::FirstStepProven;
        assert_eq!(proven, is_proven, "{fastest} ms: {progress:?}");
    }
}

#[test]
fn a_window_that_is_not_used_ends_the_search() {
    for (app_limited, usable) in [(true, 2 * CARRIED), (false, CARRIED)] {
        let mut path = Path::new(CARRIED, None);
        path.ack(ms(40));
        let sample = AckSample {
            app_limited,
            acked_bytes: 10_000,
            ..blank_ack(&path.rtt)
        };
        let progress = path.search.on_ack(&sample, path.window, usable, 99);
        assert_eq!(progress, Progress::Over { window: CARRIED });
    }
}
