//! Aggregation of acknowledgements, draft-ietf-ccwg-bbr §5.5.9.

use courser_base::{Rate, Time};

/// `BBR.extra_acked`: the recent maximum of bytes acknowledged beyond what the bandwidth explains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    /// `BBR.extra_acked_interval_start`: the time since which acknowledged bytes are counted.
    start: Time,
    /// `BBR.extra_acked_delivered`: bytes acknowledged since `start`.
    delivered: u64,
    filter: WindowedMax,
}

impl Aggregation {
    pub(super) fn new() -> Self {
        Self {
            start: Time::ZERO,
            delivered: 0,
            filter: WindowedMax::default(),
        }
    }

    /// Starts a new interval, because acknowledgements are not measured while nothing is sent.
    pub(super) fn on_restart(&mut self, now: Time) {
        self.start = now;
    }

    /// `UpdateACKAggregation()`. `rounds` is the length of the filter.
    pub(super) fn on_ack(&mut self, ack: Acked, bandwidth: Rate, round: u64, rounds: u64) {
        let mut expected = bandwidth.bytes_in(ack.now - self.start);
        if self.delivered <= expected {
            self.delivered = 0;
            self.start = ack.now;
            expected = 0;
        }
        self.delivered = self.delivered.saturating_add(ack.bytes);
        let extra = self.delivered.saturating_sub(expected).min(ack.window);
        self.filter.on_sample(extra, round, rounds);
    }

    pub(super) fn extra_acked(&self) -> u64 {
        self.filter.get()
    }
}

/// The values of an acknowledgement from which aggregation is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: Time,
    pub(super) bytes: u64,
    /// The window, which limits the extra bytes.
    pub(super) window: u64,
}

/// The largest sample in a window of rounds. Keeps the three largest, each newer than the one
/// before, so that a successor is available when the largest expires.
#[derive(Clone, Copy, Debug, Default)]
struct WindowedMax {
    best: [(u64, u64); 3],
}

impl WindowedMax {
    fn get(&self) -> u64 {
        self.best[0].0
    }

    fn on_sample(&mut self, value: u64, time: u64, length: u64) {
        let sample = (value, time);
        if value >= self.best[0].0 || time - self.best[2].1 > length {
            self.best = [sample; 3];
            return;
        }
        if value >= self.best[1].0 {
            self.best = [self.best[0], sample, sample];
        } else if value >= self.best[2].0 {
            self.best[2] = sample;
        }
        while time - self.best[0].1 > length {
            self.best = [self.best[1], self.best[2], sample];
        }
        // If part of the window has passed without a second or third best, this sample takes their
        // place. Otherwise the whole filter would expire at once.
        if self.best[1].1 == self.best[0].1 && time - self.best[1].1 > length / 4 {
            self.best = [self.best[0], sample, sample];
        } else if self.best[2].1 == self.best[1].1 && time - self.best[2].1 > length / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_sample_expires_after_the_window_and_the_next_replaces_it() {
        let mut filter = WindowedMax::default();
        filter.on_sample(100, 0, 10);
        for round in 1..=10 {
            filter.on_sample(50 - round, round, 10);
            assert_eq!(filter.get(), 100, "round {round}");
        }
        filter.on_sample(1, 11, 10);
        assert!((40..50).contains(&filter.get()), "{}", filter.get());
        filter.on_sample(200, 12, 10);
        assert_eq!(filter.get(), 200);
    }

    #[test]
    fn a_window_of_one_round_expires_after_one_round() {
        let mut filter = WindowedMax::default();
        filter.on_sample(100, 0, 1);
        filter.on_sample(10, 1, 1);
        assert_eq!(filter.get(), 100);
        filter.on_sample(10, 2, 1);
        assert_eq!(filter.get(), 10);
    }
}
