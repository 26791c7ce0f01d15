//! The undo of spurious losses, draft-ietf-ccwg-bbr §5.5.11.

use courser_base::Time;

use super::bounds::Bounds;
use crate::congestion::sample::SpuriousLoss;

/// The state before the last losses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// `BBR.undo_state`: the phase that losses ended.
    pub(super) probing: Option<Probing>,
    pub(super) bounds: Bounds,
    /// The time at which the state was saved.
    saved: Time,
    /// Bytes declared lost since the state was saved and not acknowledged.
    lost: u64,
}

/// A phase that losses can end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Probing {
    Startup,
    Up,
}

impl Undo {
    /// Saves the bounds and starts to count lost bytes, see `SaveStateUponLoss()`.
    pub(super) fn save(&mut self, now: Time, bounds: Bounds) {
        *self = Self {
            probing: None,
            bounds,
            saved: now,
            lost: 0,
        };
    }

    /// Returns true if the state is older than a packet sent at this time.
    pub(super) fn is_older_than(&self, sent: Time) -> bool {
        sent > self.saved
    }

    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Returns true if all losses since the state was saved have turned out to be spurious.
    pub(super) fn on_spurious_loss(&mut self, loss: &SpuriousLoss) -> bool {
        if loss.lost_at < self.saved || self.lost == 0 {
            return false;
        }
        self.lost = self.lost.saturating_sub(loss.bytes);
        self.lost == 0
    }

    /// Removes and returns the state to restore.
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
