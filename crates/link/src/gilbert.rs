//! Loss in bursts, by the model of Gilbert and Elliott.

use crate::probability::{Effect, Keyed};
use crate::spec::Gilbert;

/// A channel with a good and a bad state, in which packets are lost with different probabilities.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    rule: Gilbert,
    numbers: Keyed,
    state: ChannelState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ChannelState {
    Good,
    Bad,
}

impl Channel {
    pub(super) fn new(rule: Gilbert, seed: u64, hop: usize) -> Self {
        Self {
            rule,
            numbers: Keyed::new(seed, hop, Effect::Gilbert),
            state: ChannelState::Good,
        }
    }

    /// Returns true if packet `index` is lost. Must be called once for each packet, in order.
    ///
    /// The state may change before the packet, so that a burst can start with the first one.
    pub(super) fn drops(&mut self, index: u64) -> bool {
        let mut numbers = self.numbers.numbers(index);
        let (change, next) = match self.state {
            ChannelState::Good => (self.rule.to_bad, ChannelState::Bad),
            ChannelState::Bad => (self.rule.to_good, ChannelState::Good),
        };
        if change.decides(numbers.next()) {
            self.state = next;
        }
        let loss = match self.state {
            ChannelState::Good => self.rule.loss_in_good,
            ChannelState::Bad => self.rule.loss_in_bad,
        };
        loss.decides(numbers.next())
    }
}

#[cfg(test)]
mod tests;
