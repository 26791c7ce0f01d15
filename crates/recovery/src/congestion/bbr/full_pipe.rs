//! Detection of a full pipe, draft-ietf-ccwg-bbr §5.3.1.2.

use courser_base::Rate;

/// Detects three rounds in which faster sending did not lead to faster delivery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// `BBR.full_bw_reached`: the pipe has been full before.
    pub(super) is_reached: bool,
    /// `BBR.full_bw_now`: the pipe is full according to the present search.
    pub(super) is_now: bool,
    /// `BBR.full_bw`: the rate from which growth is measured.
    baseline: Rate,
    /// `BBR.full_bw_count`: rounds without growth.
    count: u32,
    /// The best app-limited sample of this round with more in flight than the path holds according
    /// to the model.
    filled: Option<Rate>,
}

impl FullPipe {
    /// `ResetFullBW()`: starts a new search for growth beyond `baseline`.
    pub(super) fn reset(&mut self, baseline: Rate) {
        self.is_now = false;
        self.baseline = baseline;
        self.count = 0;
    }

    /// Records an app-limited sample with more in flight than the path holds according to the
    /// model.
    pub(super) fn on_filled(&mut self, rate: Rate) {
        self.filled = self.filled.max(Some(rate));
    }

    /// Removes and returns the best such sample of the round.
    pub(super) fn take_filled(&mut self) -> Option<Rate> {
        self.filled.take()
    }

    /// `CheckFullBWReached()` for the rate of a round.
    pub(super) fn on_round(&mut self, rate: Rate) {
        if self.is_now {
            return;
        }
        if rate >= self.baseline.scaled(5, 4) {
            self.reset(rate);
            return;
        }
        self.count += 1;
        self.is_now = self.count >= FULL_ROUNDS;
        self.is_reached |= self.is_now;
    }

    /// Returns true if the rate has grown in the last round.
    pub(super) fn is_growing(&self) -> bool {
        self.count == 0
    }
}

/// Rounds without growth that show a full pipe: enough to outlast a receiver that raises its window
/// a round trip late.
const FULL_ROUNDS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(megabytes: u64) -> Rate {
        Rate::from_bytes_per_second(megabytes * 1_000_000)
    }

    #[test]
    fn three_rounds_with_less_than_a_quarter_of_growth_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        for megabytes in [40, 50, 62] {
            pipe.on_round(rate(megabytes));
        }
        assert!(!pipe.is_growing(), "62 is less than a quarter above 50");
        pipe.on_round(rate(62));
        assert!(!pipe.is_now && !pipe.is_reached);
        pipe.on_round(rate(62));
        assert!(pipe.is_now && pipe.is_reached);
    }

    #[test]
    fn growth_by_a_quarter_restarts_the_count() {
        let mut pipe = FullPipe::default();
        for megabytes in [40, 40, 40, 50, 50, 50] {
            pipe.on_round(rate(megabytes));
            assert!(!pipe.is_now, "{megabytes}");
        }
    }

    #[test]
    fn a_new_search_remembers_that_the_pipe_was_full() {
        let mut pipe = FullPipe::default();
        (0..4).for_each(|_| pipe.on_round(rate(40)));
        pipe.reset(rate(40));
        assert!(pipe.is_reached && !pipe.is_now);
    }
}
