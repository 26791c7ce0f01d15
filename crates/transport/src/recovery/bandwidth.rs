//! The delivery rate of a path, and an estimate of its bandwidth, for statistics.

use courser_base::Rate;
use courser_recovery::RateSample;

/// The latest sample of the delivery rate, and the highest of recent ones.
///
/// Controllers have their own estimates; this one does not depend on the controller.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bandwidth {
    latest: Rate,
    is_app_limited: bool,
    /// Round trips since the maximum began.
    rounds: u8,
    /// The round trip ends when packets are acknowledged that were sent after this many bytes were
    /// delivered.
    round_end: u64,
    /// The highest sample of this period, and of the one before.
    current: Rate,
    previous: Rate,
}

impl Bandwidth {
    /// Adds a sample. `delivered` is the total that the path has delivered.
    pub(super) fn on_sample(&mut self, sample: &RateSample, delivered: u64) {
        (self.latest, self.is_app_limited) = (sample.rate, sample.is_app_limited);
        if sample.prior_delivered >= self.round_end {
            self.round_end = delivered;
            self.rounds = self.rounds.saturating_add(1);
        }
        if sample.is_app_limited && sample.rate <= self.current.max(self.previous) {
            return;
        }
        if self.rounds > ROUNDS {
            self.rounds = 0;
            self.previous = std::mem::take(&mut self.current);
        }
        self.current = self.current.max(sample.rate);
    }

    /// Returns the latest sample; `None` until there is one.
    pub(super) fn latest(&self) -> Option<Rate> {
        Some(self.latest).filter(|&rate| rate > Rate::default())
    }

    /// Returns true if the application limited the latest sample.
    pub(super) fn is_app_limited(&self) -> bool {
        self.is_app_limited
    }

    /// Returns the highest sample of this period and the one before; `None` until there is one.
    pub(super) fn estimate(&self) -> Option<Rate> {
        Some(self.current.max(self.previous)).filter(|&rate| rate > Rate::default())
    }
}

/// Round trips of a period: enough that a pause of the application does not lower the estimate.
const ROUNDS: u8 = 10;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sample(megabytes: u64, prior_delivered: u64, is_app_limited: bool) -> RateSample {
        RateSample {
            rate: Rate::from_bytes_per_second(megabytes * 1_000_000),
            delivered: 1,
            interval: Duration::from_millis(1),
            is_app_limited,
            prior_delivered,
            lost: 0,
            tx_in_flight: 1,
        }
    }

    fn megabytes(rate: Option<Rate>) -> Option<u64> {
        rate.map(|rate| rate.as_bytes_per_second() / 1_000_000)
    }

    #[test]
    fn no_estimate_without_samples() {
        let bandwidth = Bandwidth::default();
        assert_eq!((bandwidth.latest(), bandwidth.estimate()), (None, None));
    }

    #[test]
    fn highest_sample_stays_for_ten_to_twenty_round_trips() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.on_sample(&sample(9, 0, false), 1);
        for round in 1..=u64::from(ROUNDS) {
            bandwidth.on_sample(&sample(4, round, false), round + 1);
            assert_eq!(megabytes(bandwidth.estimate()), Some(9), "{round}");
            assert_eq!(megabytes(bandwidth.latest()), Some(4));
        }
        for round in 11..=21 {
            bandwidth.on_sample(&sample(4, round, false), round + 1);
        }
        assert_eq!(megabytes(bandwidth.estimate()), Some(4));
    }

    #[test]
    fn sample_limited_by_the_application_only_raises_the_estimate() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.on_sample(&sample(9, 0, false), 1);
        for round in 1..100 {
            bandwidth.on_sample(&sample(1, round, true), round + 1);
        }
        assert_eq!(megabytes(bandwidth.estimate()), Some(9));
        assert!(bandwidth.is_app_limited());
        bandwidth.on_sample(&sample(12, 100, true), 101);
        assert_eq!(megabytes(bandwidth.estimate()), Some(12));
    }
}
