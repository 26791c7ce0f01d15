//! Pacing: spreads a window over a round trip, RFC 9002 §7.7.

use std::time::Duration;

use courser_base::{Rate, Time};

use crate::congestion::{initial_window, window_rate};
use crate::rtt::RttEstimator;

/// A token bucket that holds one quantum: the bytes that the rate moves in a millisecond, within
/// bounds.
///
/// Call it once per batch: [`reserve`](Self::reserve) bytes for it, send, then report the bytes
/// [sent](Self::on_sent) or [return](Self::return_unused) the reservation. If nothing is granted,
/// wait until [`next_release`](Self::next_release). Report probes, which need no reservation, by
/// [`on_sent`](Self::on_sent) as well.
///
/// Timers of operating systems and runtimes fire up to two milliseconds late. The bucket gets
/// credit for the bytes missed in that time. Apart from that, only a path with nothing in flight
/// fills the bucket beyond a quantum.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    /// The tokens in billionths of a byte, so that no fraction is lost between two refills.
    tokens: u64,
    refilled: Time,
    rate: Option<Rate>,
    /// A limit on the rate that the controller sets.
    cap: Option<Rate>,
    quantum: Option<u64>,
    /// The last time returned by `next_release`, until it has passed.
    release: Option<Time>,
    reservation: Reservation,
}

/// The bytes granted to the present batch, and the state of the bucket before.
#[derive(Clone, Copy, Debug, Default)]
struct Reservation {
    bytes: u64,
    tokens: u64,
    release: Option<Time>,
}

impl Pacer {
    /// Creates a pacer that allows an initial window at once. `mtu` is the datagram size.
    pub fn new(now: Time, mtu: u16) -> Self {
        Self {
            tokens: initial_window(mtu).saturating_mul(BYTE),
            refilled: now,
            rate: None,
            cap: None,
            quantum: None,
            release: None,
            reservation: Reservation::default(),
        }
    }

    /// Sets the rate, which the controller determines
    /// ([`Controller::pacing_rate`](crate::Controller::pacing_rate)). Call it after each
    /// acknowledgement and loss. With `None`, a window takes four fifths of a round trip.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate;
    }

    /// Limits the rate to `cap`, but not below two datagrams a second. With a cap, short paths are
    /// paced too, and a path with nothing in flight gets no burst.
    pub fn set_cap(&mut self, cap: Option<Rate>) {
        self.cap = cap;
    }

    /// Returns the limit of the rate.
    pub fn cap(&self) -> Option<Rate> {
        self.cap
    }

    /// Sets the quantum, the bytes sent in one batch, which the controller may determine
    /// ([`Controller::send_quantum`](crate::Controller::send_quantum)). Call it together with
    /// [`set_rate`](Self::set_rate). A quantum is at least a datagram and at most 64 KiB. With
    /// `None`, it is the bytes that the rate moves in a millisecond, at least two datagrams.
    pub fn set_quantum(&mut self, quantum: Option<u64>) {
        self.quantum = quantum;
    }

    /// Allows a burst as on a new path because nothing is in flight: an initial window, but no more
    /// than the window (RFC 9002 §7.7, §7.8). If it were paced, the end of a short response on an
    /// idle connection would arrive up to a round trip later. Do not call it for L4S queues, which
    /// mark bursts.
    pub fn on_quiescent(&mut self, window: u64, mtu: u16) {
        if self.cap.is_some() {
            return;
        }
        self.return_unused(u64::MAX);
        let burst = initial_window(mtu).min(window);
        self.tokens = self.tokens.max(burst.saturating_mul(BYTE));
    }

    /// Reserves up to `requested` bytes for a batch. Returns the bytes granted, zero if they would not
    /// fill a datagram.
    ///
    /// The bytes stay reserved until [`on_sent`](Self::on_sent) or [`return_unused`](Self::return_unused).
    /// A batch that sends nothing may omit both, because the next reservation returns this one.
    pub fn reserve(
        &mut self,
        now: Time,
        requested: u64,
        rtt: &RttEstimator,
        window: u64,
        mtu: u16,
    ) -> u64 {
        self.return_unused(u64::MAX);
        let budget = self.budget(now, rtt, window, mtu);
        if budget == u64::MAX {
            return requested;
        }
        let granted = requested.min(budget);
        if granted < requested.min(u64::from(mtu)) {
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

    /// Returns reserved bytes that the batch did not use. Bytes beyond the reservation and a second
    /// return have no effect.
    pub fn return_unused(&mut self, bytes: u64) {
        let reservation = std::mem::take(&mut self.reservation);
        if reservation.bytes == 0 {
            return;
        }
        let bytes = bytes.min(reservation.bytes);
        // Tokens earned since the reservation must not overfill the bucket.
        let most = reservation.tokens.max(self.tokens);
        self.tokens = self.tokens.saturating_add(bytes * BYTE).min(most);
        if bytes == reservation.bytes && self.release.is_none() {
            self.release = reservation.release;
        }
    }

    /// Returns the bytes that may be sent now; [`u64::MAX`] if the path is too short to pace.
    pub fn budget(&mut self, now: Time, rtt: &RttEstimator, window: u64, mtu: u16) -> u64 {
        if self.is_unpaced(rtt) {
            self.refilled = now;
            self.release = None;
            return u64::MAX;
        }
        let rate = self.effective_rate(rtt, window, mtu);
        let late = match self.release {
            Some(release) if release <= now => {
                self.release = None;
                (now - release).min(MAX_TIMER_DELAY)
            }
            _ => Duration::ZERO,
        };
        let room = self
            .quantum_at(rate, mtu)
            .saturating_add(rate.bytes_in(late));
        let elapsed = (now - self.refilled).as_nanos() as u64; // A `Time` has 64 bits.
        let earned = elapsed.saturating_mul(rate.as_bytes_per_second());
        let limit = room.saturating_mul(BYTE).max(self.tokens);
        self.tokens = self.tokens.saturating_add(earned).min(limit);
        self.refilled = self.refilled.max(now);
        self.tokens / BYTE
    }

    /// Takes the bytes sent out of the bucket, those of probes included. Returns the unused part of
    /// the reservation to the bucket.
    pub fn on_sent(&mut self, bytes: u64) {
        self.return_unused(u64::MAX);
        // A sender with more data calls `next_release` again. Others get no credit for late timers.
        self.release = None;
        self.tokens = self.tokens.saturating_sub(bytes.saturating_mul(BYTE));
    }

    /// Returns the time at which the bucket holds a quantum, or `requested` bytes if that is less.
    /// Waiting for fewer bytes would make batches smaller.
    pub fn next_release(
        &mut self,
        now: Time,
        requested: u64,
        rtt: &RttEstimator,
        window: u64,
        mtu: u16,
    ) -> Time {
        if self.is_unpaced(rtt) {
            return now;
        }
        let rate = self.effective_rate(rtt, window, mtu);
        let missing = self
            .quantum_at(rate, mtu)
            .min(requested)
            .saturating_mul(BYTE)
            .saturating_sub(self.tokens);
        let wait = missing.div_ceil(rate.as_bytes_per_second());
        let release = self.refilled + Duration::from_nanos(wait);
        self.release = Some(release);
        release.max(now)
    }

    /// Resets the pacer for a new path, on which an initial window may be sent at once. Keeps the
    /// cap.
    pub fn reset(&mut self, now: Time, mtu: u16) {
        *self = Self {
            cap: self.cap,
            ..Self::new(now, mtu)
        };
    }

    /// Returns true if the path is too short to pace, and nothing limits the rate.
    fn is_unpaced(&self, rtt: &RttEstimator) -> bool {
        self.cap.is_none() && is_too_short(rtt)
    }

    fn effective_rate(&self, rtt: &RttEstimator, window: u64, mtu: u16) -> Rate {
        let rate = self.rate.unwrap_or_else(|| window_rate(window, rtt, false));
        let rate = self.cap.map_or(rate, |cap| rate.min(cap));
        // A lower rate is not needed, because the window limits it on paths with very long round
        // trips.
        rate.max(Rate::from_bytes_per_second(2 * u64::from(mtu).max(1)))
    }

    fn quantum_at(&self, rate: Rate, mtu: u16) -> u64 {
        match self.quantum.filter(|_| self.cap.is_none()) {
            Some(bytes) => {
                let minimum = u64::from(mtu);
                bytes.clamp(minimum, MAX_QUANTUM.max(minimum))
            }
            None => quantum(rate, mtu),
        }
    }
}

/// Returns the default quantum: the bytes of 1 ms, at least two datagrams, at most a batch.
fn quantum(rate: Rate, mtu: u16) -> u64 {
    let minimum = 2 * u64::from(mtu);
    rate.bytes_in(QUANTUM_TIME)
        .clamp(minimum, MAX_QUANTUM.max(minimum))
}

fn is_too_short(rtt: &RttEstimator) -> bool {
    rtt.has_sample() && rtt.smoothed() < MIN_PACED_RTT
}

/// One byte in the units of the bucket.
const BYTE: u64 = 1_000_000_000;

const QUANTUM_TIME: Duration = Duration::from_millis(1);

/// The largest quantum: one segmentation-offload batch.
const MAX_QUANTUM: u64 = 64 * 1024;

/// The shortest round trip with pacing. On shorter paths a timer takes longer than a round trip,
/// and queues are too short to be measured.
const MIN_PACED_RTT: Duration = Duration::from_micros(200);

/// The longest timer delay for which the bucket gets credit. Longer delays count as idle time.
const MAX_TIMER_DELAY: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests;
