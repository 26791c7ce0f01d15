//! Drain, draft-ietf-ccwg-bbr §5.3.2: empties the queue that Startup has left.

use super::view::View;

/// The Drain phase, which ends when the flight fits the path or after three rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// The round in which the phase began.
    start_round: u64,
}

impl Drain {
    /// `BBR.DrainPacingGain` in percent: below 100, so that the queue shrinks.
    pub(super) const PACING_GAIN: u32 = 50;

    pub(super) fn new(start_round: u64) -> Self {
        Self { start_round }
    }

    /// Returns true at the end of the phase, see `CheckDrainDone()`.
    pub(super) fn is_done(&self, view: View<'_>) -> bool {
        let model = view.model;
        let is_drained = model.inflight <= model.inflight_at(model.bw, view.quantum());
        is_drained || model.rounds.count > self.start_round + MAX_DRAIN_ROUNDS
    }
}

/// Maximum number of rounds. A longer phase means that the bandwidth was overestimated.
const MAX_DRAIN_ROUNDS: u64 = 3;

#[cfg(test)]
mod tests;
