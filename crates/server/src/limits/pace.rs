//! Minimum rates of request bodies.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// Minimum rate at which a request body must arrive after a grace period. Only time in which the service waits
/// for the body counts, not time in which the service is busy or does not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyRate {
    /// Bytes per second, averaged over the time waited. At least 1.
    pub bytes_per_second: u32,
    /// Time during which no bytes are required. At least 1 ms.
    pub grace: Duration,
}

impl Default for BodyRate {
    /// Returns 240 bytes per second after 30 seconds: slower than any modem, but faster than clients that try to
    /// keep a request open indefinitely (attack A88).
    fn default() -> Self {
        Self {
            bytes_per_second: 240,
            grace: Duration::from_secs(30),
        }
    }
}

/// The error of a request body that arrived more slowly than [`BodyRate`] requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TooSlow {
    /// Number of content bytes received.
    pub received: u64,
    /// Time that the service waited for them.
    pub waited: Duration,
    /// The rate that was required. For the content of a gRPC call, which has none, it is 0 bytes per second, and
    /// the grace period is the longest allowed silence.
    pub rate: BodyRate,
}

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BodyRate {
            bytes_per_second,
            grace,
        } = self.rate;
        if bytes_per_second == 0 {
            let received = self.received;
            return write!(
                f,
                "request body silent for {grace:?} after {received} bytes"
            );
        }
        write!(
            f,
            "request body too slow: {} bytes in {:?}, the minimum is {bytes_per_second} bytes per \
             second after {grace:?}",
            self.received, self.waited
        )
    }
}

impl std::error::Error for TooSlow {}

/// The pace at which one body must arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequiredPace {
    Rate(BodyRate),
    /// Any rate, with pauses of at most this length.
    Silence(Duration),
}

/// Monitors the pace of one body.
#[derive(Debug)]
pub(crate) struct Pace {
    required: RequiredPace,
    received: u64,
    /// Total time of earlier waits.
    waited: Duration,
    /// Start of the current wait.
    since: Option<Instant>,
}

impl Pace {
    pub(crate) const fn new(required: RequiredPace) -> Self {
        Self {
            required,
            received: 0,
            waited: Duration::ZERO,
            since: None,
        }
    }

    /// Records the arrival of `bytes` of content.
    pub(crate) fn on_received(&mut self, now: Instant, bytes: u64) {
        if let Some(since) = self.since.take() {
            let waited = now - since;
            // A waiting reader would have been woken at the limit, so a longer time means that it was busy.
            if waited <= self.remaining() {
                self.waited += waited;
            }
        }
        if let RequiredPace::Silence(_) = self.required {
            self.waited = Duration::ZERO;
        }
        self.received = self.received.saturating_add(bytes);
    }

    /// Starts or continues a wait. Returns the time at which the body will be too slow, which does not change
    /// while no content arrives.
    pub(crate) fn on_waiting(&mut self, now: Instant) -> Instant {
        let since = *self.since.get_or_insert(now);
        since + self.remaining()
    }

    /// Returns the error for a body that is too slow.
    pub(crate) fn too_slow(&self, now: Instant) -> TooSlow {
        let waiting = self.since.map_or(Duration::ZERO, |since| now - since);
        TooSlow {
            received: self.received,
            waited: self.waited + waiting,
            rate: match self.required {
                RequiredPace::Rate(rate) => rate,
                RequiredPace::Silence(grace) => BodyRate {
                    bytes_per_second: 0,
                    grace,
                },
            },
        }
    }

    /// Returns the remaining time to wait.
    fn remaining(&self) -> Duration {
        self.earned().saturating_sub(self.waited)
    }

    /// Returns the time allowed for the bytes received.
    fn earned(&self) -> Duration {
        let rate = match self.required {
            RequiredPace::Rate(rate) => rate,
            RequiredPace::Silence(limit) => return limit.min(LONGEST),
        };
        let per_second = u64::from(rate.bytes_per_second).max(1);
        let earned = Duration::from_millis(self.received.saturating_mul(1000) / per_second);
        rate.grace.min(LONGEST) + earned.min(LONGEST)
    }
}

/// Bound of time sums, so that they do not overflow with any input and settings.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[cfg(test)]
mod tests;
