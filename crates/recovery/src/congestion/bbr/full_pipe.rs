//! Is the pipe full? draft-ietf-ccwg-bbr §5.3.1.2.

use courser_base::Rate;

/// Looks for three rounds in which sending faster brought no faster delivery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// `BBR.full_bw_reached`: the pipe has been full at some time.
    pub(super) is_reached: bool,
    /// `BBR.full_bw_now`: it is, as far as the present look for it can tell.
    pub(super) is_now: bool,
    /// `BBR.full_bw`: what growth is measured against.
    baseline: Rate,
    /// `BBR.full_bw_count`: rounds without growth.
    count: u32,
    /// The best app-limited sample of this round that had more in flight than the path is thought
    /// to hold.
    filled: Option<Rate>,
}

impl FullPipe {
    /// `ResetFullBW()`: looks anew, for growth beyond `baseline`.
    pub(super) fn reset(&mut self, baseline: Rate) {
        self.is_now = false;
        self.baseline = baseline;
        self.count = 0;
    }

    /// An app-limited sample had more in flight than the path is thought to hold.
    pub(super) fn on_filled(&mut self, rate: Rate) {
        self.filled = self.filled.max(Some(rate));
    }

    /// The best such sample of the round that is over.
    pub(super) fn take_filled(&mut self) -> Option<Rate> {
        self.filled.take()
    }

    /// `CheckFullBWReached()`, for the first sample of a round that is not app-limited.
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

    /// The last round still brought growth.
    pub(super) fn is_growing(&self) -> bool {
        self.count == 0
    }
}

/// Enough to outlast a receiver that raises its window a round trip late.
const FULL_ROUNDS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(megabytes: u64) -> Rate {
        Rate::from_bytes_per_second(megabytes * 1_000_000)
    }

    #[test]
    fn three_rounds_that_bring_less_than_a_quarter_fill_the_pipe() {
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
    fn a_quarter_more_starts_the_count_anew() {
        let mut pipe = FullPipe::default();
        for megabytes in [40, 40, 40, 50, 50, 50] {
            pipe.on_round(rate(megabytes));
            assert!(!pipe.is_now, "{megabytes}");
        }
    }

    #[test]
    fn a_new_look_keeps_that_it_was_full_once() {
        let mut pipe = FullPipe::default();
        (0..4).for_each(|_| pipe.on_round(rate(40)));
        pipe.reset(rate(40));
        assert!(pipe.is_reached && !pipe.is_now);
    }
}
