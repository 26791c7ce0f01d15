//! Round-trip time estimation, RFC 9002 §5.

use std::time::Duration;

use courser_base::Time;

/// The smoothed round-trip time, its variation and its minimum on one path.
///
/// Samples are limited to a minute, because a peer that acknowledges late could make every timer
/// that depends on the estimate arbitrarily long (attack A51).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RttEstimator {
    latest: Duration,
    smoothed: Duration,
    rttvar: Duration,
    min: Duration,
    first_sample: Option<Time>,
}

impl RttEstimator {
    /// Creates an estimator without samples that assumes `initial`. RFC 9002 §5.3, §6.2.2.
    pub fn new(initial: Duration) -> Self {
        let initial = initial.clamp(MIN_SAMPLE, MAX_SAMPLE);
        Self {
            latest: initial,
            smoothed: initial,
            rttvar: initial / 2,
            min: initial,
            first_sample: None,
        }
    }

    /// Returns the newest sample, or the initial value before the first one.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// Returns the exponentially weighted mean of the samples.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// Returns the mean deviation of the samples.
    pub fn rttvar(&self) -> Duration {
        self.rttvar
    }

    /// Returns the smallest sample, acknowledgement delay included.
    pub fn min(&self) -> Duration {
        self.min
    }

    /// Returns true if there was a sample.
    pub fn has_sample(&self) -> bool {
        self.first_sample.is_some()
    }

    /// Returns the time of the first sample.
    pub fn first_sample_time(&self) -> Option<Time> {
        self.first_sample
    }

    /// Updates the estimate with the sample of an ACK. The ACK must newly acknowledge its largest
    /// number and at least one ack-eliciting packet (RFC 9002 §5.1).
    ///
    /// `ack_delay` is the delay that the peer reported, zero for an Initial packet. `max_ack_delay`
    /// is the peer's limit for it, `None` until the handshake is confirmed.
    pub fn on_sample(
        &mut self,
        now: Time,
        latest: Duration,
        ack_delay: Duration,
        max_ack_delay: Option<Duration>,
    ) {
        self.latest = latest.clamp(MIN_SAMPLE, MAX_SAMPLE);
        if self.first_sample.is_none() {
            self.first_sample = Some(now);
            self.smoothed = self.latest;
            self.rttvar = self.latest / 2;
            self.min = self.latest;
            return;
        }
        self.min = self.min.min(self.latest);
        let ack_delay = max_ack_delay.map_or(ack_delay, |max| ack_delay.min(max));
        let adjusted = match self.latest.checked_sub(ack_delay) {
            Some(adjusted) if adjusted >= self.min => adjusted,
            _ => self.latest,
        };
        self.rttvar = (self.rttvar * 3 + self.smoothed.abs_diff(adjusted)) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
    }

    /// Returns the probe timeout without acknowledgement delay and backoff,
    /// `smoothed + max(4 * rttvar, granularity)`. RFC 9002 §6.2.1.
    pub fn pto_base(&self) -> Duration {
        self.smoothed + (self.rttvar * 4).max(TIMER_GRANULARITY)
    }

    /// Sets the minimum to the newest sample, because persistent congestion may mean that the route
    /// has changed. RFC 9002 §5.2.
    pub fn on_persistent_congestion(&mut self) {
        self.min = self.latest;
    }

    /// Resets the estimator after a change of path. RFC 9000 §9.4.
    pub fn reset(&mut self, initial: Duration) {
        *self = Self::new(initial);
    }
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self::new(INITIAL_RTT)
    }
}

/// The round-trip time assumed before the first sample. RFC 9002 §6.2.2.
pub const INITIAL_RTT: Duration = Duration::from_millis(333);

/// The assumed granularity of timers. RFC 9002 §6.1.2.
pub const TIMER_GRANULARITY: Duration = Duration::from_millis(1);

/// The shortest sample. Rates divide by the round-trip time, so it must not be zero if the clock
/// has not advanced between two events.
const MIN_SAMPLE: Duration = Duration::from_nanos(1);

/// The longest sample (limit K82): six times that of a path of ten seconds, which is far above any
/// on Earth.
const MAX_SAMPLE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
