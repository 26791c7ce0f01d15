//! A token bucket without a queue.

use courser_base::Time;

use crate::spec::Policer;

/// A bucket that admits a packet if it holds tokens for its size.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    rule: Policer,
    /// Tokens in bytes times 10^9, so that no refill is rounded.
    tokens: u64,
    filled: Time,
}

impl Bucket {
    pub(super) fn new(rule: Policer) -> Self {
        Self {
            rule,
            tokens: capacity(&rule),
            filled: Time::ZERO,
        }
    }

    /// Removes tokens for a packet of `size` bytes. Returns false if there are not enough.
    pub(super) fn admits(&mut self, now: Time, size: u64) -> bool {
        let elapsed = u64::try_from((now - self.filled).as_nanos()).unwrap_or(u64::MAX);
        let earned = elapsed.saturating_mul(self.rule.rate.as_bytes_per_second());
        self.tokens = self.tokens.saturating_add(earned).min(capacity(&self.rule));
        self.filled = self.filled.max(now);
        match self.tokens.checked_sub(size * NANOS_PER_SECOND) {
            Some(left) => {
                self.tokens = left;
                true
            }
            None => false,
        }
    }
}

fn capacity(rule: &Policer) -> u64 {
    rule.burst.saturating_mul(NANOS_PER_SECOND)
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests;
