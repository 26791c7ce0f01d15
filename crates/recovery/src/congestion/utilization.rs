//! The utilization of the window: an underutilized window does not grow, RFC 9002 §7.8.

use super::sample::AckSample;

/// Measures how much of the window was in flight in the last round trips.
///
/// The application is only one of the limits of a sender. Others are its CPU, its socket or a cap
/// of its rate, while there is always more to send. Each acknowledgement would let the window grow,
/// to gigabytes within seconds on loopback, and the first change of the path would cause a burst.
/// So the window may grow to at most twice what was in flight. Slow start needs that much, because
/// it doubles the window in each round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Utilization {
    /// The first packet number of the next round, whose acknowledgement ends this one.
    round_end: u64,
    /// The maximum of bytes in flight in this round.
    peak: u64,
    /// The maximum of bytes in flight in the previous round.
    last_peak: u64,
}

impl Utilization {
    /// Updates the maxima with an acknowledgement. `last_sent` is the largest packet number sent.
    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>, last_sent: u64) {
        if sample.largest_acked >= self.round_end {
            self.last_peak = self.peak;
            self.peak = 0;
            self.round_end = last_sent.saturating_add(1);
        }
        self.peak = self.peak.max(sample.bytes_in_flight_before);
    }

    /// Returns the size up to which the window may grow.
    pub(super) fn limit(&self) -> u64 {
        self.peak.max(self.last_peak).saturating_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::blank_ack;
    use crate::rtt::RttEstimator;

    fn ack(largest_acked: u64, in_flight: u64) -> AckSample<'static> {
        static RTT: std::sync::LazyLock<RttEstimator> =
            std::sync::LazyLock::new(RttEstimator::default);
        AckSample {
            largest_acked,
            bytes_in_flight_before: in_flight,
            ..blank_ack(&RTT)
        }
    }

    #[test]
    fn the_peaks_of_this_round_and_the_last_one_count() {
        let mut utilization = Utilization::default();
        assert_eq!(utilization.limit(), 0, "nothing was in flight");
        utilization.on_ack(&ack(0, 12_000), 9);
        assert_eq!(utilization.limit(), 24_000);
        // The same round.
        utilization.on_ack(&ack(9, 20_000), 15);
        utilization.on_ack(&ack(9, 3_000), 15);
        assert_eq!(utilization.limit(), 40_000);
        // The next one, and the one after that.
        utilization.on_ack(&ack(10, 5_000), 20);
        assert_eq!(utilization.limit(), 40_000);
        utilization.on_ack(&ack(21, 4_000), 25);
        assert_eq!(utilization.limit(), 10_000);
    }
}
