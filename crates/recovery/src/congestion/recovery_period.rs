//! The recovery period of RFC 9002 §7.3.2.

use courser_base::Time;

/// The round trip after a reduction, during which no sign of congestion is new.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecoveryPeriod {
    start: Option<Time>,
    has_collapsed: bool,
}

impl RecoveryPeriod {
    /// Returns true if a packet sent at this time was sent before the last reduction, so that its
    /// loss is not a new sign.
    pub(super) fn covers(&self, sent: Time) -> bool {
        self.start.is_some_and(|start| sent <= start)
    }

    /// Returns true if the acknowledgement of a packet sent at this time must not increase the
    /// window.
    pub(super) fn holds(&self, sent: Time) -> bool {
        !self.has_collapsed && self.covers(sent)
    }

    /// Begins a period.
    pub(super) fn start(&mut self, now: Time) {
        self.start = Some(now);
        self.has_collapsed = false;
    }

    /// Ends the period on persistent congestion, RFC 9002 appendix B.8.
    ///
    /// Deviates: the period ends only for growth. Earlier packets that are declared lost later are
    /// signs of the same congestion, and would set the threshold to the collapsed window. TCP holds
    /// the threshold as well, RFC 5681 §3.1.
    pub(super) fn collapse(&mut self, now: Time) {
        self.start = Some(now);
        self.has_collapsed = true;
    }

    /// Ends the period because there was no congestion.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
