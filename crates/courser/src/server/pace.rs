//! How fast bodies of requests have to come.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// The slowest that the body of a request may come: so many bytes a second once a first time has
/// passed. Only the time is counted that the service waits for it, not that it computes or holds
/// the client back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyRate {
    /// Bytes a second, on the average of the time that was waited; 0 is taken for 1.
    pub bytes_per_second: u32,
    /// For so long nothing is expected.
    pub grace: Duration,
}

impl Default for BodyRate {
    /// 240 bytes a second after 30 seconds: less than any modem, and more than those send who want
    /// to keep a request open for ever (A88).
    fn default() -> Self {
        Self {
            bytes_per_second: 240,
            grace: Duration::from_secs(30),
        }
    }
}

/// A body came more slowly than [`BodyRate`] allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TooSlow {
    /// Bytes that had come.
    pub received: u64,
    /// How long they were waited for.
    pub waited: Duration,
    /// What is allowed.
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

/// Watches one body.
#[derive(Debug)]
pub(super) struct Pace {
    rate: BodyRate,
    received: u64,
    /// Waited before.
    waited: Duration,
    /// Since when it is waited for.
    since: Option<Instant>,
}

impl Pace {
    pub(super) const fn new(rate: BodyRate) -> Self {
        Self {
            rate,
            received: 0,
            waited: Duration::ZERO,
            since: None,
        }
    }

    /// Something has come; `bytes` of it are content.
    pub(super) fn on_received(&mut self, now: Instant, bytes: u64) {
        if let Some(since) = self.since.take() {
            let waited = now - since;
            // Who waited would have been woken when the time was up: this one did something else.
            if waited <= self.left() {
                self.waited += waited;
            }
        }
        self.received = self.received.saturating_add(bytes);
    }

    /// Nothing is there. Returns when that will be too little; the same as long as nothing comes.
    pub(super) fn on_waiting(&mut self, now: Instant) -> Instant {
        let since = *self.since.get_or_insert(now);
        since + self.left()
    }

    /// What to say when that time has come.
    pub(super) fn too_slow(&self, now: Instant) -> TooSlow {
        let waiting = self.since.map_or(Duration::ZERO, |since| now - since);
        TooSlow {
            received: self.received,
            waited: self.waited + waiting,
            rate: self.rate,
        }
    }

    /// For how long more it may be waited for.
    fn left(&self) -> Duration {
        self.earned().saturating_sub(self.waited)
    }

    /// For how long what has come may have been waited for.
    fn earned(&self) -> Duration {
        let rate = u64::from(self.rate.bytes_per_second).max(1);
        let earned = Duration::from_millis(self.received.saturating_mul(1000) / rate);
        self.rate.grace.min(LONGEST) + earned.min(LONGEST)
    }
}

/// Sums of times must not overflow, whatever came and whatever was set.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[cfg(test)]
mod tests;
