//! The highest delivery rate of late, draft-ietf-ccwg-bbr §5.5.2 to §5.5.6.

use courser_base::Rate;

/// `BBR.max_bw_filter`: the highest sample of this ProbeBW cycle and the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    current: Rate,
    previous: Rate,
}

impl MaxBandwidth {
    /// `BBR.max_bw`.
    pub(super) fn get(&self) -> Rate {
        self.current.max(self.previous)
    }

    pub(super) fn on_sample(&mut self, rate: Rate) {
        self.current = self.current.max(rate);
    }

    /// `AdvanceMaxBwFilter()`: a cycle is over.
    pub(super) fn advance(&mut self) {
        // Without a sample there is nothing to go by but the last cycle's.
        if self.current > Rate::default() {
            self.previous = std::mem::take(&mut self.current);
        }
    }
}
