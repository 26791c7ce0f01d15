//! The recent maximum of the delivery rate, draft-ietf-ccwg-bbr §5.5.2 to §5.5.6.

use courser_base::Rate;

/// `BBR.max_bw_filter`: the highest sample of this ProbeBW cycle and the previous one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    current: Rate,
    previous: Rate,
}

impl MaxBandwidth {
    /// Returns `BBR.max_bw`, the higher sample of both cycles; zero before the first.
    pub(super) fn get(&self) -> Rate {
        self.current.max(self.previous)
    }

    pub(super) fn on_sample(&mut self, rate: Rate) {
        self.current = self.current.max(rate);
    }

    /// `AdvanceMaxBwFilter()`: ends a cycle.
    pub(super) fn advance(&mut self) {
        // A cycle without samples leaves the sample of the previous one in place.
        if self.current > Rate::default() {
            self.previous = std::mem::take(&mut self.current);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(megabytes: u64) -> Rate {
        Rate::from_bytes_per_second(megabytes * 1_000_000)
    }

    #[test]
    fn the_highest_sample_counts_for_this_cycle_and_the_next() {
        let mut max_bw = MaxBandwidth::default();
        max_bw.on_sample(rate(5));
        max_bw.on_sample(rate(3));
        assert_eq!(max_bw.get(), rate(5));
        max_bw.advance();
        max_bw.on_sample(rate(2));
        assert_eq!(max_bw.get(), rate(5));
        max_bw.advance();
        assert_eq!(max_bw.get(), rate(2));
    }

    #[test]
    fn a_cycle_without_samples_keeps_the_maximum() {
        let mut max_bw = MaxBandwidth::default();
        max_bw.on_sample(rate(5));
        max_bw.advance();
        max_bw.advance();
        max_bw.advance();
        assert_eq!(max_bw.get(), rate(5));
    }
}
