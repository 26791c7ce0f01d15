//! Chances, and the numbers that decide them.
//!
//! Every decision of a link is a function of a seed, the place of the effect and the number of
//! the packet, never of how many decisions were made before. So one effect can be added or
//! taken away without any other deciding differently, and a run replays exactly.

use crate::seed::{GOLDEN, finalize, mix};

/// How likely something is, in parts per 10^9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Probability(u32);

impl Probability {
    /// It never happens.
    pub const NEVER: Self = Self(0);
    /// It always happens.
    pub const ALWAYS: Self = Self(BILLION);

    /// Makes a probability from parts per 10^9; more than 10^9 count as always.
    pub const fn from_parts_per_billion(parts: u32) -> Self {
        Self(if parts > BILLION { BILLION } else { parts })
    }

    /// Makes a probability from whole percent; more than 100 count as always.
    pub const fn from_percent(percent: u32) -> Self {
        Self::from_parts_per_billion(percent.saturating_mul(BILLION / 100))
    }

    /// Parts per 10^9.
    pub const fn as_parts_per_billion(self) -> u32 {
        self.0
    }

    /// Whether a uniformly random number decides for it.
    pub(super) const fn decides(self, random: u64) -> bool {
        // The upper half scaled to 0..10^9 is off from fair by less than 2^-32.
        ((random >> 32) * BILLION as u64) >> 32 < self.0 as u64
    }
}

/// The random numbers of one effect: which ones a packet gets depends on its number alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyed(u64);

impl Keyed {
    /// The numbers of the effect with this name, on stretch `hop` of a link with `seed`.
    pub(super) const fn new(seed: u64, hop: usize, effect: Effect) -> Self {
        let place = ((hop as u64) << 8) | effect as u64;
        Self(finalize(seed ^ mix(place)))
    }

    /// The first random number for packet `index`.
    pub(super) const fn first(self, index: u64) -> u64 {
        finalize(self.0.wrapping_add(index.wrapping_mul(GOLDEN)))
    }

    /// As many random numbers as packet `index` needs.
    pub(super) const fn numbers(self, index: u64) -> Numbers {
        Numbers(self.first(index))
    }
}

/// A row of random numbers, SplitMix64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        finalize(self.0)
    }

    /// Uniform from 0 to `below` - 1; 0 when `below` is 0.
    pub(super) const fn below(&mut self, below: u64) -> u64 {
        scale(self.next(), below)
    }
}

/// `random`, uniform over all 64 bits, scaled to 0..`below`.
pub(super) const fn scale(random: u64, below: u64) -> u64 {
    ((random as u128 * below as u128) >> 64) as u64
}

/// Another seed that follows from this one, for a part that shall decide for itself.
pub(super) const fn derived(seed: u64, part: u64) -> u64 {
    finalize(seed.wrapping_add(mix(part)))
}

/// The effects that decide by chance. The numbers keep old runs replayable: never reuse one.
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
