//! Minimum rate at which clients must take what waits for them.

use std::time::Duration;

use tokio::time::Instant;

use super::tally::Record;

/// Minimum rate at which a client must take what waits for it on its connection.
///
/// Time counts while something waits that the client keeps from being sent: by granting no credit,
/// by acknowledging late, or by not reading from its socket. What the client takes pays for that
/// time, at this rate. Nothing counts while a response is still being made, so event streams and
/// tunnels may be silent for as long as they like.
///
/// The rate is that of the whole connection. A client may leave one response unread while it takes
/// others, as browsers do with a video that is paused: each request that ends starts the count
/// anew. A response that is held this way keeps 512 bytes beyond the credit of the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRate {
    /// Bytes per second; 0 counts as 1.
    pub bytes_per_second: u32,
    /// The longest time that a client may be behind this rate.
    pub grace: Duration,
}

impl Default for ReadRate {
    /// 240 bytes per second, and 60 seconds: less than any modem takes, and more than a client that
    /// takes a byte now and then to hold its responses for ever (limit K105, attack A88).
    fn default() -> Self {
        Self {
            bytes_per_second: 240,
            grace: Duration::from_secs(60),
        }
    }
}

/// Time that a client is behind its [`ReadRate`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrears {
    rate: ReadRate,
    behind: Duration,
}

impl Arrears {
    pub(super) const fn new(rate: ReadRate) -> Self {
        Self {
            rate,
            behind: Duration::ZERO,
        }
    }

    /// The client took `bytes`, and kept more from being sent for this time.
    ///
    /// A client is never ahead: who reads fast at first must not be able to stop for hours.
    pub(super) fn on_taken(&mut self, bytes: u64, waited: Duration) {
        let rate = u64::from(self.rate.bytes_per_second).max(1);
        let earned = Duration::from_micros(bytes.saturating_mul(1_000_000) / rate);
        self.behind = self.behind.saturating_add(waited).saturating_sub(earned);
    }

    /// Nothing waits any more, or the client is lively in another way.
    pub(super) const fn forgive(&mut self) {
        self.behind = Duration::ZERO;
    }

    /// For how much longer the client may take nothing; zero when it is too slow.
    pub(super) const fn left(&self) -> Duration {
        self.rate.grace.saturating_sub(self.behind)
    }
}

/// Progress of a client at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Sample {
    /// Bytes that the client has taken so far.
    pub(super) taken: u64,
    /// Bytes that wait to be taken.
    pub(super) waiting: u64,
    /// True while the client keeps a response from being written on.
    pub(super) is_blocked: bool,
    /// Requests that have ended so far.
    pub(super) ended: u64,
}

impl Sample {
    const fn is_waiting(&self) -> bool {
        self.waiting > 0 || self.is_blocked
    }
}

/// Watches how a client takes what waits on its connection.
#[derive(Debug)]
pub(super) struct Reading {
    /// The longest time without any progress.
    patience: Option<Duration>,
    arrears: Option<Arrears>,
    last: Sample,
    at: Instant,
    /// When the client took something last, or had nothing to take.
    lively: Instant,
}

impl Reading {
    pub(super) const fn new(
        patience: Option<Duration>,
        rate: Option<ReadRate>,
        first: Sample,
        now: Instant,
    ) -> Self {
        let arrears = match rate {
            Some(rate) => Some(Arrears::new(rate)),
            None => None,
        };
        Self {
            patience,
            arrears,
            last: first,
            at: now,
            lively: now,
        }
    }

    /// Takes a sample; true if the client is to be given up.
    pub(super) fn on_sample(&mut self, now: Instant, sample: Sample) -> bool {
        let (last, passed) = (self.last, now - self.at);
        (self.last, self.at) = (sample, now);
        let taken = sample.taken.saturating_sub(last.taken);
        if taken > 0 || !sample.is_waiting() {
            self.lively = now;
        }
        if let Some(arrears) = &mut self.arrears {
            // Something waits at any time while events follow each other faster than packets come
            // back. That is not the client's fault: it has taken what waited before.
            let is_held_up = (last.is_blocked && sample.is_blocked) || taken < last.waiting;
            if !sample.is_waiting() || sample.ended != last.ended {
                arrears.forgive();
            } else {
                let waited = if is_held_up { passed } else { Duration::ZERO };
                arrears.on_taken(taken, waited);
            }
            if arrears.left().is_zero() {
                return true;
            }
        }
        self.patience
            .is_some_and(|patience| now - self.lively >= patience)
    }

    /// The time until the next sample is worth taking; `None` if there is nothing to watch for.
    pub(super) fn pause(&self, rtt: Duration) -> Option<Duration> {
        let grace = self.arrears.map(|arrears| arrears.rate.grace);
        let longest = self.patience.into_iter().chain(grace).min()? / 4;
        let pause = match grace {
            // Long enough for the client to acknowledge what it has received.
            Some(grace) if self.last.is_waiting() => rtt
                .saturating_mul(ROUND_TRIPS)
                .clamp(grace / FINENESS, (grace / 8).max(grace / FINENESS)),
            _ => longest,
        };
        Some(pause.min(longest).max(SHORTEST_PAUSE))
    }
}

/// Ready when the client of a connection has taken nothing of what waits for it for too long, or
/// takes it too slowly. Up to a quarter of the time later, because connections are only looked at
/// now and then.
pub(super) async fn stalled(
    mut reading: Reading,
    sample: impl Fn() -> Sample,
    rtt: impl Fn() -> Duration,
) {
    loop {
        match reading.pause(rtt()) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => std::future::pending().await,
        }
        if reading.on_sample(Instant::now(), sample()) {
            return;
        }
    }
}

impl Record {
    /// Requests that have ended, answered or not.
    pub(super) fn ended(&self) -> u64 {
        use std::sync::atomic::Ordering::Relaxed;
        let in_flight = self.requests_in_flight.load(Relaxed);
        self.requests.load(Relaxed).saturating_sub(in_flight)
    }
}

/// Samples per grace while something waits. More of them find out sooner what was taken at once.
const FINENESS: u32 = 60;
/// An acknowledgement takes one, a lost packet one or two more.
const ROUND_TRIPS: u32 = 3;
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
