//! The rate: one packet after the other, exact over any time.

use courser_base::{Rate, Time};

/// Serialises packets at a rate.
///
/// A busy period never drifts: what is left of a nanosecond after one packet is carried over to
/// the next, so that n bytes take n / rate, rounded down once.
#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    rate: u64,
    /// When the last packet has left.
    free_at: Time,
    /// What that time leaves out, in nanoseconds times rate.
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

    /// From the next packet on; the one that is leaving keeps its time.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.rate = clamped(rate);
        self.remainder = 0;
    }

    /// When the next packet can begin to leave.
    pub(super) fn free_at(&self) -> Time {
        self.free_at
    }

    /// Begins to send `size` bytes at `start`, not before [`Transmitter::free_at`], and returns
    /// when the last of them leaves.
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

/// Neither a standstill nor so fast that the arithmetic of [`Transmitter::send`] overflows.
fn clamped(rate: Rate) -> u64 {
    rate.as_bytes_per_second().clamp(1, MAX_RATE)
}

/// A byte in a picosecond: the largest datagram takes less than a nanosecond.
const MAX_RATE: u64 = 1_000_000_000_000_000;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests;
