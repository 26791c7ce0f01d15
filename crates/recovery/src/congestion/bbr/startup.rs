//! Startup, draft-ietf-ccwg-bbr §5.3.1: doubles the rate each round until the pipe is full.

use super::undo::Probing;
use super::{Bbr, Sample, State};

impl Bbr {
    /// `EnterStartup()`.
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// `CheckFullBWReached()`.
    ///
    /// Deviates: the draft never asks app-limited samples, because the path may be faster than
    /// they are. One that had a quarter more in flight than the path is thought to hold, and met
    /// a queue, tells nevertheless: on a faster path it would have been faster. Without it a flow that
    /// the peer's window limits stays in Startup, sends each window at nearly three times the
    /// path's rate, and keeps as long a queue as the window allows. The best such sample of a
    /// round counts, since its first packet may follow a pause.
    pub(super) fn check_full_bw_reached(&mut self, rs: &Sample) {
        if rs.is_app_limited && self.has_overfilled(rs) {
            self.full_pipe.on_filled(rs.delivery_rate);
        }
        if !self.rounds.is_start {
            return;
        }
        let filled = self.full_pipe.take_filled();
        if let Some(rate) = filled.filter(|_| rs.is_app_limited) {
            self.full_pipe.on_round(rate);
        } else if !rs.is_app_limited {
            self.full_pipe.on_round(rs.delivery_rate);
        }
    }

    /// A quarter more was in flight than the path is thought to hold, and it took a quarter longer
    /// than on an empty path.
    fn has_overfilled(&self, rs: &Sample) -> bool {
        let (Some(rtt), Some(min)) = (rs.rtt, self.min_rtt.get()) else {
            return false;
        };
        let filling = self.bdp_multiple(self.max_bw.get(), FILLED_GAIN);
        rs.tx_in_flight >= filling && rtt >= min + min / 4
    }

    /// `CheckStartupDone()`.
    pub(super) fn check_startup_done(&mut self, rs: &Sample) {
        self.check_startup_high_loss(rs);
        if self.state == State::Startup && self.full_pipe.is_reached {
            self.enter_drain();
        }
    }

    /// `CheckStartupHighLoss()`: the pipe overflows although the rate still grows.
    fn check_startup_high_loss(&mut self, rs: &Sample) {
        // A round that had loss in it began with the first, so a full one has passed since.
        if !self.loss_round.is_start {
            return;
        }
        let ranges = std::mem::take(&mut self.loss_round.ranges);
        let marks = std::mem::take(&mut self.loss_round.marks);
        if self.state != State::Startup || self.full_pipe.is_reached {
            return;
        }
        let has_high_loss = ranges >= FULL_LOSS_COUNT && self.is_inflight_too_high(rs);
        if has_high_loss || marks >= FULL_LOSS_COUNT {
            self.undo.probing = Some(Probing::Startup);
            self.full_pipe.is_now = true;
            self.full_pipe.is_reached = true;
            self.inflight_longterm = Some(self.bdp().max(self.loss_round.inflight_latest));
        }
    }
}

/// In percent, the growth that [`FullPipe`](super::full_pipe::FullPipe) looks for.
const FILLED_GAIN: u32 = 125;

/// `BBRStartupFullLossCnt`: ranges of packets lost in a round, or acknowledgements with marks.
const FULL_LOSS_COUNT: u32 = 6;

#[cfg(test)]
mod tests;
