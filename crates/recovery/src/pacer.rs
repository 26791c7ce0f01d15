//! Spreads a window over a round trip, RFC 9002 §7.7.

use std::time::Duration;

use courser_base::{Rate, Time};

use crate::congestion::{initial_window, window_rate};
use crate::rtt::RttEstimator;

/// A token bucket of one quantum: what the rate moves in a millisecond, within bounds.
///
/// One decision for each batch: [`reserve`](Self::reserve) what it may take, let it drain that,
/// then tell what was [sent](Self::on_sent), or what to [take back](Self::give_back); when nothing
/// is granted, wait until [`next_release`](Self::next_release). Probes that do not ask are told of
/// by [`on_sent`](Self::on_sent) too.
///
/// Timers of operating systems and runtimes are up to a millisecond or two late; what was missed
/// by that is credited. Besides that, only a path with nothing in flight lifts the bucket above a
/// quantum.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    /// In billionths of a byte, so that no fraction gets lost between two refills.
    tokens: u64,
    refilled: Time,
    rate: Option<Rate>,
    quantum: Option<u64>,
    /// The release that was last promised and has not come yet.
    release: Option<Time>,
    reservation: Reservation,
}

/// What the batch that is being made has got, and what was there before.
#[derive(Clone, Copy, Debug, Default)]
struct Reservation {
    bytes: u64,
    tokens: u64,
    release: Option<Time>,
}

impl Pacer {
    /// A pacer that lets an initial window leave at once. `mtu` is the datagram size.
    pub fn new(now: Time, mtu: u16) -> Self {
        Self {
            tokens: initial_window(mtu).saturating_mul(BYTE),
            refilled: now,
            rate: None,
            quantum: None,
            release: None,
            reservation: Reservation::default(),
        }
    }

    /// Sets the rate, which the controller knows best
    /// ([`Controller::pacing_rate`](crate::Controller::pacing_rate)); to be called after each
    /// acknowledgement and loss. With `None`, a window takes four fifths of a round trip.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate;
    }

    /// Sets how many bytes leave in one go, which the controller may want to know best
    /// ([`Controller::send_quantum`](crate::Controller::send_quantum)); to be called with the
    /// rate. At least a datagram, at most 64 KiB. With `None`, it is what the rate moves in a
    /// millisecond, at least two datagrams.
    pub fn set_quantum(&mut self, quantum: Option<u64>) {
        self.quantum = quantum;
    }

    /// Nothing is in flight: as much may leave at once as on a new path, an initial window but no
    /// more than the window (RFC 9002 §7.7, §7.8). Spread over a round trip, a short answer on a
    /// connection that was idle would wait for its own tail. For L4S queues, which mark bursts, not
    /// to be called.
    pub fn on_quiescent(&mut self, window: u64, mtu: u16) {
        self.give_back(u64::MAX);
        let burst = initial_window(mtu).min(window);
        self.tokens = self.tokens.max(burst.saturating_mul(BYTE));
    }

    /// Grants bytes to a batch that would like to send `wanted`: all, or fewer, or zero when there
    /// is not enough for a datagram.
    ///
    /// They are taken until the batch says what became of them, by [`on_sent`](Self::on_sent) or
    /// [`give_back`](Self::give_back). A batch that came to nothing may say nothing: the next
    /// reservation begins with the return of this one.
    pub fn reserve(
        &mut self,
        now: Time,
        wanted: u64,
        rtt: &RttEstimator,
        window: u64,
        mtu: u16,
    ) -> u64 {
        self.give_back(u64::MAX);
        let budget = self.budget(now, rtt, window, mtu);
        if budget == u64::MAX {
            return wanted;
        }
        let granted = wanted.min(budget);
        if granted < wanted.min(u64::from(mtu)) {
            return 0;
        }
        self.reservation = Reservation {
            bytes: granted,
            tokens: self.tokens,
            release: self.release.take(),
        };
        self.tokens -= granted * BYTE;
        granted
    }

    /// Returns what the batch did not use of its reservation. More than was granted, or a second
    /// return, changes nothing.
    pub fn give_back(&mut self, bytes: u64) {
        let reservation = std::mem::take(&mut self.reservation);
        if reservation.bytes == 0 {
            return;
        }
        let bytes = bytes.min(reservation.bytes);
        // What has been earned since does not come on top of a full bucket.
        let most = reservation.tokens.max(self.tokens);
        self.tokens = self.tokens.saturating_add(bytes * BYTE).min(most);
        if bytes == reservation.bytes && self.release.is_none() {
            self.release = reservation.release;
        }
    }

    /// How many bytes may leave now; [`u64::MAX`] when the path is too short to pace.
    pub fn budget(&mut self, now: Time, rtt: &RttEstimator, window: u64, mtu: u16) -> u64 {
        if is_too_short(rtt) {
            self.refilled = now;
            self.release = None;
            return u64::MAX;
        }
        let rate = self.effective_rate(rtt, window, mtu);
        let late = match self.release {
            Some(release) if release <= now => {
                self.release = None;
                (now - release).min(LONGEST_DELAY)
            }
            _ => Duration::ZERO,
        };
        let room = self
            .quantum_at(rate, mtu)
            .saturating_add(rate.bytes_in(late));
        let elapsed = (now - self.refilled).as_nanos() as u64; // A `Time` is 64 bits of these.
        let earned = elapsed.saturating_mul(rate.as_bytes_per_second());
        let limit = room.saturating_mul(BYTE).max(self.tokens);
        self.tokens = self.tokens.saturating_add(earned).min(limit);
        self.refilled = self.refilled.max(now);
        self.tokens / BYTE
    }

    /// Takes what was sent out of the bucket, probes that did not ask included. What was reserved
    /// and not sent returns.
    pub fn on_sent(&mut self, bytes: u64) {
        self.give_back(u64::MAX);
        // A sender that has more will ask again; one that has not is owed nothing later.
        self.release = None;
        self.tokens = self.tokens.saturating_sub(bytes.saturating_mul(BYTE));
    }

    /// When a whole quantum will be there, or `wanted` if that is less. Waiting for less would send
    /// smaller batches.
    pub fn next_release(
        &mut self,
        now: Time,
        wanted: u64,
        rtt: &RttEstimator,
        window: u64,
        mtu: u16,
    ) -> Time {
        if is_too_short(rtt) {
            return now;
        }
        let rate = self.effective_rate(rtt, window, mtu);
        let missing = self
            .quantum_at(rate, mtu)
            .min(wanted)
            .saturating_mul(BYTE)
            .saturating_sub(self.tokens);
        let wait = missing.div_ceil(rate.as_bytes_per_second());
        let release = self.refilled + Duration::from_nanos(wait);
        self.release = Some(release);
        release.max(now)
    }

    /// Starts over with an initial window, on a new path.
    pub fn reset(&mut self, now: Time, mtu: u16) {
        *self = Self::new(now, mtu);
    }

    fn effective_rate(&self, rtt: &RttEstimator, window: u64, mtu: u16) -> Rate {
        let rate = self.rate.unwrap_or_else(|| window_rate(window, rtt, false));
        // On a round trip of days the window alone is slow enough.
        rate.max(Rate::from_bytes_per_second(2 * u64::from(mtu).max(1)))
    }

    fn quantum_at(&self, rate: Rate, mtu: u16) -> u64 {
        match self.quantum {
            Some(bytes) => {
                let least = u64::from(mtu);
                bytes.clamp(least, LARGEST_QUANTUM.max(least))
            }
            None => quantum(rate, mtu),
        }
    }
}

/// What leaves in one go: 1 ms worth, at least two datagrams, at most a batch.
fn quantum(rate: Rate, mtu: u16) -> u64 {
    let least = 2 * u64::from(mtu);
    rate.bytes_in(QUANTUM_TIME)
        .clamp(least, LARGEST_QUANTUM.max(least))
}

fn is_too_short(rtt: &RttEstimator) -> bool {
    rtt.has_sample() && rtt.smoothed() < SHORTEST_PACED_RTT
}

/// One byte in units of the bucket.
const BYTE: u64 = 1_000_000_000;

const QUANTUM_TIME: Duration = Duration::from_millis(1);

/// One segmentation-offload batch.
const LARGEST_QUANTUM: u64 = 64 * 1024;

/// Below, a timer takes longer than a round trip, and queues are shorter than we could see.
const SHORTEST_PACED_RTT: Duration = Duration::from_micros(200);

/// Lateness of a timer that is made up for; more than this is idleness.
const LONGEST_DELAY: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests;
