//! Drain, draft-ietf-ccwg-bbr §5.3.2: empties the queue that Startup left.

use courser_base::Time;

use super::{Bbr, State, UNITY};

impl Bbr {
    /// `EnterDrain()`.
    pub(super) fn enter_drain(&mut self) {
        self.state = State::Drain {
            start_round: self.rounds.count,
        };
    }

    /// `CheckDrainDone()`.
    pub(super) fn check_drain_done(&mut self, now: Time) {
        let State::Drain { start_round } = self.state else {
            return;
        };
        let is_drained = self.inflight <= self.inflight_at(self.bw, UNITY);
        if is_drained || self.rounds.count > start_round + MAX_DRAIN_ROUNDS {
            self.start_probe_bw_down(now);
        }
    }
}

/// Longer, and the bandwidth was taken for higher than it is.
const MAX_DRAIN_ROUNDS: u64 = 3;

#[cfg(test)]
mod tests;
