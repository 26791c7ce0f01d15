//! Transmission at a rate, exact over any period.

use courser_base::{Rate, Time};

/// Transmits packets one after another at a rate.
///
/// Rounding errors do not add up: the fraction of a nanosecond after one packet is carried over to
/// the next, so that n bytes in a busy period take n / rate, rounded down once.
#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    rate: u64,
    /// The time at which the transmission of the last packet ends.
    free_at: Time,
    /// The fraction of a nanosecond by which `free_at` was rounded down, in nanoseconds times rate.
    remainder: u64,
}

impl Transmitter {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            rate: clamped(rate),
            free_at: Time::ZERO,
            remainder: 0,
        }
    }

    pub(super) fn rate(&self) -> Rate {
        Rate::from_bytes_per_second(self.rate)
    }

    /// Sets the rate from the next packet on. The packet being transmitted keeps its time.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.rate = clamped(rate);
        self.remainder = 0;
    }

    /// Returns the time at which the next transmission can start.
    pub(super) fn free_at(&self) -> Time {
        self.free_at
    }

    /// Transmits `size` bytes from `start` on, which must not be before [`Transmitter::free_at`].
    /// Returns the time at which the transmission ends.
    pub(super) fn send(&mut self, start: Time, size: u64) -> Time {
        if start > self.free_at {
            self.remainder = 0;
        }
        let work = size * NANOS_PER_SECOND + self.remainder;
        self.remainder = work % self.rate;
        let nanos = start.as_nanos().saturating_add(work / self.rate);
        self.free_at = Time::from_nanos(nanos);
        self.free_at
    }
}

/// Returns the rate in bytes per second, above zero and so low that [`Transmitter::send`] cannot
/// overflow.
fn clamped(rate: Rate) -> u64 {
    rate.as_bytes_per_second().clamp(1, MAX_RATE)
}

/// A byte per picosecond, at which the largest datagram takes less than a nanosecond.
const MAX_RATE: u64 = 1_000_000_000_000_000;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests;
