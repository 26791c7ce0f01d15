//! Probabilities, and the random numbers of decisions.
//!
//! Every decision of a link is a function of a seed, the position of the effect and the number of
//! the packet. Earlier decisions have no influence. An effect can therefore be added or removed
//! without changing the decisions of the others, and a run can be replayed exactly.

use crate::seed::{GOLDEN, finalize, mix};

/// A probability in parts per 10^9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Probability(u32);

impl Probability {
    /// The probability of an event that never happens.
    pub const NEVER: Self = Self(0);
    /// The probability of an event that always happens.
    pub const ALWAYS: Self = Self(BILLION);

    /// Creates a probability from parts per 10^9. More than 10^9 count as always.
    pub const fn from_parts_per_billion(parts: u32) -> Self {
        Self(if parts > BILLION { BILLION } else { parts })
    }

    /// Creates a probability from whole percent. More than 100 count as always.
    pub const fn from_percent(percent: u32) -> Self {
        Self::from_parts_per_billion(percent.saturating_mul(BILLION / 100))
    }

    /// Returns the parts per 10^9.
    pub const fn as_parts_per_billion(self) -> u32 {
        self.0
    }

    /// Returns true if the event happens for this uniformly random number.
    pub(super) const fn decides(self, random: u64) -> bool {
        // Scaling the upper half to 0..10^9 has a bias of less than 2^-32.
        ((random >> 32) * BILLION as u64) >> 32 < self.0 as u64
    }
}

/// The random numbers of one effect. The numbers for a packet depend only on its index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyed(u64);

impl Keyed {
    /// Creates the numbers of an effect on hop `hop` of a link with `seed`.
    pub(super) const fn new(seed: u64, hop: usize, effect: Effect) -> Self {
        let position = ((hop as u64) << 8) | effect as u64;
        Self(finalize(seed ^ mix(position)))
    }

    /// Returns the first random number of packet `index`.
    pub(super) const fn first(self, index: u64) -> u64 {
        finalize(self.0.wrapping_add(index.wrapping_mul(GOLDEN)))
    }

    /// Returns the random numbers of packet `index`.
    pub(super) const fn numbers(self, index: u64) -> Numbers {
        Numbers(self.first(index))
    }
}

/// A sequence of random numbers, SplitMix64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        finalize(self.0)
    }

    /// Returns a uniformly random number below `below`, or 0 if `below` is 0.
    pub(super) const fn below(&mut self, below: u64) -> u64 {
        scale(self.next(), below)
    }
}

/// Scales `random`, uniform over all 64 bits, to 0..`below`.
pub(super) const fn scale(random: u64, below: u64) -> u64 {
    ((random as u128 * below as u128) >> 64) as u64
}

/// Derives the seed of a part with decisions of its own.
pub(super) const fn derived(seed: u64, part: u64) -> u64 {
    finalize(seed.wrapping_add(mix(part)))
}

/// The random effects. Their numbers must not be reused, so that old runs can be replayed.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Effect {
    Loss = 1,
    Gilbert = 2,
    Corrupt = 3,
    Truncate = 4,
    Extend = 5,
    Remark = 6,
    Duplicate = 7,
    Jitter = 8,
    Reorder = 9,
    Nat = 10,
}

const BILLION: u32 = 1_000_000_000;

#[cfg(test)]
mod tests;
