//! The recovery period of RFC 9002 §7.3.2.

use courser_base::Time;

/// The round trip after a reduction, in which no sign of congestion is new.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecoveryPeriod {
    start: Option<Time>,
    has_collapsed: bool,
}

impl RecoveryPeriod {
    /// True when a packet sent at this time left before the window was last reduced: its loss is
    /// no news.
    pub(super) fn covers(&self, sent: Time) -> bool {
        self.start.is_some_and(|start| sent <= start)
    }

    /// True when the acknowledgement of a packet sent at this time does not make the window grow.
    pub(super) fn holds(&self, sent: Time) -> bool {
        !self.has_collapsed && self.covers(sent)
    }

    pub(super) fn start(&mut self, now: Time) {
        self.start = Some(now);
        self.has_collapsed = false;
    }

    /// RFC 9002 appendix B.8: persistent congestion ends the period.
    ///
    /// Deviates: only for growth. Packets of the time before that are declared lost later show
    /// the same congestion, and would set the threshold to the collapsed window. TCP holds it
    /// too, RFC 5681 §3.1.
    pub(super) fn collapse(&mut self, now: Time) {
        self.start = Some(now);
        self.has_collapsed = true;
    }

    /// There was no congestion after all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
