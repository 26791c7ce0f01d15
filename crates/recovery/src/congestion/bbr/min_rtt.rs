//! The round-trip time of the empty path, draft-ietf-ccwg-bbr §5.3.4.3, §5.5.7.

use std::time::Duration;

use courser_base::Time;

/// Two minima: the model uses the one over ten seconds, and the one over five seconds determines
/// when to empty the queue for a new measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    /// `BBR.min_rtt` with the time of its sample; `None` is infinite.
    long: Option<(Duration, Time)>,
    /// `BBR.probe_rtt_min_delay` with the time of its sample.
    short: Option<(Duration, Time)>,
    /// `BBR.probe_rtt_expired`: it is time for ProbeRTT.
    pub(super) is_expired: bool,
    /// The time at which the queue was last emptied on purpose, or a new minimum was found.
    measured: Time,
}

impl MinRtt {
    /// Creates both minima from an earlier measurement.
    pub(super) fn seeded(now: Time, rtt: Duration) -> Self {
        Self {
            long: Some((rtt, now)),
            short: Some((rtt, now)),
            is_expired: false,
            measured: now,
        }
    }

    /// Returns `BBR.min_rtt`; `None` before the first sample.
    pub(super) fn get(&self) -> Option<Duration> {
        self.long.map(|(rtt, _)| rtt)
    }

    /// Updates both minima, see `UpdateMinRTT()`.
    pub(super) fn on_ack(&mut self, now: Time, sample: Option<Duration>) {
        self.is_expired = self
            .short
            .is_some_and(|(_, stamp)| now > stamp + PROBE_RTT_INTERVAL);
        if let Some(sample) = sample
            && (self.is_expired || self.short.is_none_or(|(rtt, _)| sample < rtt))
        {
            self.short = Some((sample, now));
            self.measured = now;
        }
        let is_long_expired = self
            .long
            .is_some_and(|(_, stamp)| now > stamp + MIN_RTT_FILTER_LEN);
        if let Some((rtt, stamp)) = self.short
            && (is_long_expired || self.long.is_none_or(|(long, _)| rtt < long))
        {
            self.long = Some((rtt, stamp));
        }
    }

    /// Postpones the next ProbeRTT by an interval after the queue was emptied on purpose.
    pub(super) fn on_probed(&mut self, now: Time) {
        self.measured = now;
        self.postpone(now);
    }

    /// Returns true for a sample near the minimum, which at most a few packets of other flows have
    /// delayed.
    pub(super) fn is_near_minimum(&self, sample: Duration) -> bool {
        self.long
            .is_some_and(|(rtt, _)| sample <= rtt + rtt / NEARNESS)
    }

    /// Records that the queue was empty, during a whole round or for one packet. Postpones the next
    /// ProbeRTT by an interval and keeps the minimum, until enough time has passed for ProbeRTT to
    /// cost no more than intended.
    pub(super) fn on_empty_queue(&mut self, now: Time) {
        let Some((rtt, _)) = self.long else { return };
        let longest = (rtt * INTERVAL_RTTS).min(MAX_INTERVAL);
        if self.is_expired || now + PROBE_RTT_INTERVAL > self.measured + longest {
            return;
        }
        self.postpone(now);
        if let Some((_, stamp)) = &mut self.long {
            *stamp = now;
        }
    }

    fn postpone(&mut self, now: Time) {
        if let Some((_, stamp)) = &mut self.short {
            *stamp = now;
        }
    }
}

/// `BBR.ProbeRTTInterval`. Flows enter ProbeRTT at the same time only if all use the same interval.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);

/// `BBR.MinRTTFilterLen`: the time after which a higher round-trip time replaces the long minimum.
const MIN_RTT_FILTER_LEN: Duration = Duration::from_secs(10);

/// The longest interval in round trips. ProbeRTT takes half a round trip without sending and a
/// whole one at half the rate: one round trip lost in fifty is 2 %.
const INTERVAL_RTTS: u32 = 50;

/// The divisor of the minimum for samples near it. 3 ms of 100 ms is more than the variation of
/// timers and ACK delays, and less than a queue.
const NEARNESS: u32 = 32;

/// The longest interval. A standing queue of other flows may look like a long path, which only
/// ProbeRTT can reveal.
const MAX_INTERVAL: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn first_sample_does_not_count_as_expiry_at_any_time() {
        let mut min = MinRtt::default();
        min.on_ack(at(1000), Some(50 * MS));
        assert!(!min.is_expired);
        assert_eq!(min.get(), Some(50 * MS));
    }

    #[test]
    fn a_higher_round_trip_time_counts_after_ten_seconds() {
        let mut min = MinRtt::default();
        min.on_ack(at(0), Some(50 * MS));
        min.on_ack(at(4), Some(80 * MS));
        assert!(!min.is_expired);
        min.on_ack(at(6), Some(80 * MS));
        assert!(min.is_expired, "five seconds without a lower one");
        assert_eq!(min.get(), Some(50 * MS));
        min.on_ack(at(11), Some(90 * MS));
        assert_eq!(min.get(), Some(80 * MS));
    }

    #[test]
    fn a_lower_one_counts_at_once() {
        let mut min = MinRtt::default();
        min.on_ack(at(0), Some(50 * MS));
        min.on_ack(at(1), Some(20 * MS));
        assert_eq!(min.get(), Some(20 * MS));
        min.on_ack(at(6), Some(25 * MS));
        assert!(!min.is_expired, "the lower sample postpones ProbeRTT");
    }
}
