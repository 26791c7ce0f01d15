//! Random events with a limit on consecutive ones.

use crate::probability::{Effect, Keyed};
use crate::spec::Repeated;

/// A random decision for each packet. After the maximum number of consecutive hits, one packet is
/// spared.
///
/// The simulator of the QUIC interop runner has the same limit: with 30 % loss and at most 3
/// consecutive losses every handshake completes.
#[derive(Clone, Debug)]
pub(super) struct Chance {
    rule: Repeated,
    numbers: Keyed,
    in_a_row: u32,
}

impl Chance {
    pub(super) fn new(rule: Repeated, seed: u64, hop: usize, effect: Effect) -> Self {
        Self {
            rule,
            numbers: Keyed::new(seed, hop, effect),
            in_a_row: 0,
        }
    }

    pub(super) fn set_rule(&mut self, rule: Repeated) {
        self.rule = rule;
    }

    /// Returns true if the event occurs for packet `index`. Must be called once for each packet, in
    /// order.
    pub(super) fn hits(&mut self, index: u64) -> bool {
        let is_spared = self.rule.burst.is_some_and(|burst| self.in_a_row >= burst);
        let is_hit = !is_spared && self.rule.probability.decides(self.numbers.first(index));
        self.in_a_row = if is_hit {
            self.in_a_row.saturating_add(1)
        } else {
            0
        };
        is_hit
    }
}

#[cfg(test)]
mod tests;
