//! Taking back what losses did that were none, draft-ietf-ccwg-bbr §5.5.11.

use courser_base::Time;

use super::bounds::Bounds;
use crate::congestion::sample::SpuriousLoss;

/// The state before the last losses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// `BBR.undo_state`: the phase that losses ended.
    pub(super) probing: Option<Probing>,
    pub(super) bounds: Bounds,
    /// When the state was saved.
    saved: Time,
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
    /// `SaveStateUponLoss()`.
    pub(super) fn save(&mut self, now: Time, bounds: Bounds) {
        *self = Self {
            probing: None,
            bounds,
            saved: now,
            lost: 0,
        };
    }

    /// True for a packet that was sent after the state was saved.
    pub(super) fn is_older_than(&self, sent: Time) -> bool {
        sent > self.saved
    }

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

    /// Takes the state to return to.
    pub(super) fn take(&mut self, now: Time) -> Self {
        let start = Self {
            saved: now,
            ..Self::default()
        };
        std::mem::replace(self, start)
    }
}

#[cfg(test)]
mod tests;
