//! Random events with a limit on how many follow each other.

use crate::probability::{Effect, Keyed};
use crate::spec::Repeated;

/// A random decision for each packet. After a limit of hits in a row it spares one packet.
///
/// The limit is the rule of the QUIC interop runner's simulator: with 30 % loss and at most 3 losses
/// in a row every handshake completes.
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

    /// Returns true if it hits packet `index`. Must be called once for each packet, in order.
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
