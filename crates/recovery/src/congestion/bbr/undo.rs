//! Taking back what losses did that were none, draft-ietf-ccwg-bbr §5.5.11.

use courser_base::{Rate, Time};

use super::model::ShortTerm;
use super::{Bbr, State};
use crate::congestion::SpuriousLoss;

/// The state before the last losses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// `BBR.undo_state`: the phase that losses ended.
    pub(super) probing: Option<Probing>,
    short_term: Option<ShortTerm>,
    inflight_longterm: Option<u64>,
    /// When the state was saved.
    pub(super) saved: Time,
    /// Bytes that were lost since, and have not arrived after all.
    lost: u64,
}

/// A phase that losses can end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Probing {
    Startup,
    Up,
}

impl Undo {
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// True when nothing is left of the losses since the state was saved.
    pub(super) fn on_spurious_loss(&mut self, loss: &SpuriousLoss) -> bool {
        if loss.lost_at < self.saved || self.lost == 0 {
            return false;
        }
        self.lost = self.lost.saturating_sub(loss.bytes);
        self.lost == 0
    }
}

impl Bbr {
    /// `SaveStateUponLoss()`.
    pub(super) fn save_state_upon_loss(&mut self, now: Time) {
        self.save_cwnd();
        self.undo = Undo {
            probing: None,
            short_term: self.short_term,
            inflight_longterm: self.inflight_longterm,
            saved: now,
            lost: 0,
        };
    }

    /// `HandleSpuriousLossDetection()`.
    pub(super) fn handle_spurious_loss_detection(&mut self, now: Time) {
        self.restore_cwnd();
        self.recovery.is_active = false;
        self.loss_round.forget_loss();
        self.full_pipe.reset(Rate::default());
        let undo = std::mem::take(&mut self.undo);
        self.undo.saved = now;
        self.short_term = ShortTerm::max(self.short_term, undo.short_term);
        self.inflight_longterm = match (self.inflight_longterm, undo.inflight_longterm) {
            (Some(one), Some(other)) => Some(one.max(other)),
            _ => None,
        };
        let is_probing_rtt = matches!(self.state, State::ProbeRtt { .. });
        match undo.probing {
            Some(Probing::Startup) if self.state != State::Startup => {
                self.full_pipe.is_reached = false;
                if !is_probing_rtt {
                    self.enter_startup();
                }
            }
            Some(Probing::Up) if self.state != State::Up && !is_probing_rtt => {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
