//! The round-trip time of the empty path, draft-ietf-ccwg-bbr §5.3.4.3, §5.5.7.

use std::time::Duration;

use courser_base::Time;

/// Two minima: one over ten seconds that the model uses, and one over five that says when to
/// look again by emptying the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    /// `BBR.min_rtt` and its stamp; `None` is infinite.
    long: Option<(Duration, Time)>,
    /// `BBR.probe_rtt_min_delay` and its stamp.
    short: Option<(Duration, Time)>,
    /// `BBR.probe_rtt_expired`.
    pub(super) is_expired: bool,
    /// When the queue was last emptied on purpose, or a new minimum found.
    measured: Time,
}

impl MinRtt {
    /// A minimum that was known before.
    pub(super) fn seeded(now: Time, rtt: Duration) -> Self {
        Self {
            long: Some((rtt, now)),
            short: Some((rtt, now)),
            is_expired: false,
            measured: now,
        }
    }

    /// `BBR.min_rtt`; `None` before the first sample.
    pub(super) fn get(&self) -> Option<Duration> {
        self.long.map(|(rtt, _)| rtt)
    }

    /// `UpdateMinRTT()`.
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

    /// Puts off the next ProbeRTT by an interval: the queue was emptied on purpose.
    pub(super) fn on_probed(&mut self, now: Time) {
        self.measured = now;
        self.postpone(now);
    }

    /// A packet took no longer than the minimum and what a few packets of others add to it.
    pub(super) fn is_met_by(&self, sample: Duration) -> bool {
        self.long
            .is_some_and(|(rtt, _)| sample <= rtt + rtt / NEARNESS)
    }

    /// The queue was empty, for a whole round or when one packet passed it. Puts off the next ProbeRTT by an interval and keeps
    /// the minimum, until so much time has passed that ProbeRTT costs no more than it should.
    pub(super) fn on_empty_queue(&mut self, now: Time) {
        let Some((rtt, _)) = self.long else { return };
        let longest = (rtt * INTERVAL_RTTS).min(LONGEST_INTERVAL);
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

/// `BBR.ProbeRTTInterval`. Flows find each other in ProbeRTT only if all use the same.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);

/// `BBR.MinRTTFilterLen`.
const MIN_RTT_FILTER_LEN: Duration = Duration::from_secs(10);

/// Half a round trip without sending, and a whole one at half the rate: a round trip lost in
/// fifty is 2 %.
const INTERVAL_RTTS: u32 = 50;

/// 3 ms of 100 ms: above what timers and ACK delays vary by, below a queue.
const NEARNESS: u32 = 32;

/// A queue of others may look like a long path. Sooner or later it is to be tried.
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn first_sample_is_no_expiry_whatever_the_clock_says() {
        let mut min = MinRtt::default();
        min.on_ack(at(1000), Some(50 * MS));
        assert!(!min.is_expired);
        assert_eq!(min.get(), Some(50 * MS));
    }

    #[test]
    fn a_higher_round_trip_time_is_believed_after_ten_seconds() {
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
    fn a_lower_one_is_believed_at_once() {
        let mut min = MinRtt::default();
        min.on_ack(at(0), Some(50 * MS));
        min.on_ack(at(1), Some(20 * MS));
        assert_eq!(min.get(), Some(20 * MS));
        min.on_ack(at(6), Some(25 * MS));
        assert!(!min.is_expired, "the lower one put it off");
    }
}
