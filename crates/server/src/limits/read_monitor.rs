//! Minimum rates at which clients must read waiting data.

use std::time::Duration;

use tokio::time::Instant;

/// Minimum rate at which a client must read waiting data on its connection.
///
/// Time counts while the client prevents waiting data from being sent: by granting no credit, by acknowledging
/// late, or by not reading from its socket. Data that it reads offsets that time at this rate. No time counts
/// while a response is still being computed, so event streams and tunnels may be idle for any time.
///
/// The rate applies to the whole connection. A client may leave one response unread while it reads others, as
/// browsers do with a paused video: each completed request resets the count. Such a response holds 512 bytes
/// beyond the client's credit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRate {
    /// Required bytes per second. At least 1.
    pub bytes_per_second: u32,
    /// The longest time by which a client may be behind this rate. At least 1 ms.
    pub grace: Duration,
}

impl Default for ReadRate {
    /// Returns 240 bytes per second and 60 seconds: slower than any modem, but faster than clients that read
    /// single bytes to hold their responses indefinitely (limit K105, attack A88).
    fn default() -> Self {
        Self {
            bytes_per_second: 240,
            grace: Duration::from_secs(60),
        }
    }
}

/// The time by which a client is behind its [`ReadRate`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrears {
    rate: ReadRate,
    behind: Duration,
}

impl Arrears {
    pub(crate) const fn new(rate: ReadRate) -> Self {
        Self {
            rate,
            behind: Duration::ZERO,
        }
    }

    /// Counts `bytes` that the client read, and the time for which it prevented more from being sent.
    ///
    /// A client cannot be ahead, because reading fast at first must not allow a pause of hours later.
    pub(crate) fn on_taken(&mut self, bytes: u64, waited: Duration) {
        let rate = u64::from(self.rate.bytes_per_second).max(1);
        let earned = Duration::from_micros(bytes.saturating_mul(1_000_000) / rate);
        self.behind = self.behind.saturating_add(waited).saturating_sub(earned);
    }

    /// Resets the count, because no data waits or the client completes other requests.
    pub(crate) const fn reset(&mut self) {
        self.behind = Duration::ZERO;
    }

    /// Returns how much longer the client may read nothing; zero if it is too slow.
    pub(crate) const fn remaining(&self) -> Duration {
        self.rate.grace.saturating_sub(self.behind)
    }
}

/// The minimum rate at which a peer must read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReaderPace {
    /// The longest time in which it may read nothing.
    pub(crate) longest_pause: Option<Duration>,
    pub(crate) arrears: Option<Arrears>,
}

impl ReaderPace {
    /// Returns how much longer the peer may read nothing.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        let left = self.arrears.map(|arrears| arrears.remaining());
        self.longest_pause.into_iter().chain(left).min()
    }
}

/// The progress of a client at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sample {
    /// Total bytes that the client has read.
    pub(crate) taken: u64,
    /// Bytes that wait to be read.
    pub(crate) waiting: u64,
    /// True while the client prevents more of a response from being written.
    pub(crate) is_blocked: bool,
    /// Total number of requests that have ended.
    pub(crate) ended: u64,
}

impl Sample {
    const fn is_waiting(&self) -> bool {
        self.waiting > 0 || self.is_blocked
    }
}

/// Monitors how a client reads the data that waits on its connection.
#[derive(Debug)]
pub(crate) struct ReadMonitor {
    /// The longest time without any progress.
    longest_pause: Option<Duration>,
    arrears: Option<Arrears>,
    last: Sample,
    at: Instant,
    /// The time at which the client last read data or had none to read.
    last_progress: Instant,
}

impl ReadMonitor {
    pub(crate) const fn new(
        longest_pause: Option<Duration>,
        rate: Option<ReadRate>,
        first: Sample,
        now: Instant,
    ) -> Self {
        let arrears = match rate {
            Some(rate) => Some(Arrears::new(rate)),
            None => None,
        };
        Self {
            longest_pause,
            arrears,
            last: first,
            at: now,
            last_progress: now,
        }
    }

    /// Processes a sample. Returns true if the client must be disconnected.
    pub(crate) fn on_sample(&mut self, now: Instant, sample: Sample) -> bool {
        let (last, passed) = (self.last, now - self.at);
        (self.last, self.at) = (sample, now);
        let taken = sample.taken.saturating_sub(last.taken);
        if taken > 0 || !sample.is_waiting() {
            self.last_progress = now;
        }
        if let Some(arrears) = &mut self.arrears {
            // If events follow each other faster than acknowledgements arrive, data always waits. That is not
            // the client's fault if it has read all data that waited before.
            let is_held_up = (last.is_blocked && sample.is_blocked) || taken < last.waiting;
            if !sample.is_waiting() || sample.ended != last.ended {
                arrears.reset();
            } else {
                let waited = if is_held_up { passed } else { Duration::ZERO };
                arrears.on_taken(taken, waited);
            }
            if arrears.remaining().is_zero() {
                return true;
            }
        }
        self.longest_pause
            .is_some_and(|longest_pause| now - self.last_progress >= longest_pause)
    }

    /// Returns the time until the next useful sample, or `None` if nothing is limited.
    pub(crate) fn pause(&self, rtt: Duration) -> Option<Duration> {
        let grace = self.arrears.map(|arrears| arrears.rate.grace);
        let longest = self.longest_pause.into_iter().chain(grace).min()? / 4;
        let pause = match grace {
            // Long enough for the client to acknowledge the received data.
            Some(grace) if self.last.is_waiting() => rtt
                .saturating_mul(ROUND_TRIPS)
                .clamp(grace / SAMPLES, (grace / 8).max(grace / SAMPLES)),
            _ => longest,
        };
        Some(pause.min(longest).max(SHORTEST_PAUSE))
    }
}

/// Completes when a client has read none of the waiting data for too long, or reads it too slowly. Detection may
/// take a quarter longer than the limit, because connections are sampled rarely.
pub(crate) async fn stalled(
    mut monitor: ReadMonitor,
    sample: impl Fn() -> Sample,
    rtt: impl Fn() -> Duration,
) {
    loop {
        match monitor.pause(rtt()) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => std::future::pending().await,
        }
        if monitor.on_sample(Instant::now(), sample()) {
            return;
        }
    }
}

/// Number of samples per grace period while data waits. More samples detect a slow reader earlier.
const SAMPLES: u32 = 60;
/// Number of round trips between samples: an acknowledgement takes one, a lost packet one or two more.
const ROUND_TRIPS: u32 = 3;
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
