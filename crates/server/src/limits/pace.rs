//! Minimum rates of request bodies.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// Minimum rate at which a request body must arrive after a grace period. Only the time in which
/// the service waits for the body counts, not the time in which it computes or holds the client
/// back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyRate {
    /// Bytes per second, averaged over the time waited. At least 1.
    pub bytes_per_second: u32,
    /// Time in which nothing is required. At least 1 ms.
    pub grace: Duration,
}

impl Default for BodyRate {
    /// Returns 240 bytes a second after 30 seconds: slower than any modem, but faster than clients
    /// that try to hold a request open indefinitely (A88).
    fn default() -> Self {
        Self {
            bytes_per_second: 240,
            grace: Duration::from_secs(30),
        }
    }
}

/// An error for a body that arrived more slowly than [`BodyRate`] allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TooSlow {
    /// Bytes received.
    pub received: u64,
    /// Time waited for them.
    pub waited: Duration,
    /// The required rate.
    pub rate: BodyRate,
}

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BodyRate {
            bytes_per_second,
            grace,
        } = self.rate;
        write!(
            f,
            "request body too slow: {} bytes in {:?}, the minimum is {bytes_per_second} bytes per \
             second after {grace:?}",
            self.received, self.waited
        )
    }
}

impl std::error::Error for TooSlow {}

/// Monitors the rate of one body.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: BodyRate,
    received: u64,
    /// The time waited before.
    waited: Duration,
    /// The start of the current wait.
    since: Option<Instant>,
}

impl Pace {
    pub(crate) const fn new(rate: BodyRate) -> Self {
        Self {
            rate,
            received: 0,
            waited: Duration::ZERO,
            since: None,
        }
    }

    /// Records an arrival with `bytes` of content.
    pub(crate) fn on_received(&mut self, now: Instant, bytes: u64) {
        if let Some(since) = self.since.take() {
            let waited = now - since;
            // A waiting reader would have been woken at the limit, so this one was busy otherwise.
            if waited <= self.left() {
                self.waited += waited;
            }
        }
        self.received = self.received.saturating_add(bytes);
    }

    /// Begins or continues a wait. Returns the time at which the body counts as too slow, which
    /// does not change while nothing arrives.
    pub(crate) fn on_waiting(&mut self, now: Instant) -> Instant {
        let since = *self.since.get_or_insert(now);
        since + self.left()
    }

    /// Returns the error for a body that is too slow.
    pub(crate) fn too_slow(&self, now: Instant) -> TooSlow {
        let waiting = self.since.map_or(Duration::ZERO, |since| now - since);
        TooSlow {
            received: self.received,
            waited: self.waited + waiting,
            rate: self.rate,
        }
    }

    /// Returns the time left to wait for it.
    fn left(&self) -> Duration {
        self.earned().saturating_sub(self.waited)
    }

    /// Returns the time that may be waited in return for the bytes received.
    fn earned(&self) -> Duration {
        let rate = u64::from(self.rate.bytes_per_second).max(1);
        let earned = Duration::from_millis(self.received.saturating_mul(1000) / rate);
        self.rate.grace.min(LONGEST) + earned.min(LONGEST)
    }
}

/// Sums of times must not overflow, whatever the input and the settings.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[cfg(test)]
mod tests;
