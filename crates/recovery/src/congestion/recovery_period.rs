//! The recovery period of RFC 9002 §7.3.2.

use std::time::Duration;

use courser_base::Time;

/// The round trip after a reduction. Congestion signals of packets sent before its end are not new.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecoveryPeriod {
    start: Option<Time>,
    /// The latest time at which sent packets do not reveal new congestion; at least `start`.
    covered_until: Option<Time>,
    has_collapsed: bool,
}

impl RecoveryPeriod {
    /// Returns true if a packet sent at this time does not reveal new congestion: it was sent before
    /// the last reduction, or before that had taken effect.
    pub(super) fn covers(&self, sent: Time) -> bool {
        self.covered_until.is_some_and(|until| sent <= until)
    }

    /// Returns true if the packets sent in a whole round trip after the last reduction had taken
    /// effect were sent before this time.
    pub(super) fn is_long_before(&self, sent: Time, rtt: Duration) -> bool {
        self.covered_until.is_some_and(|until| sent > until + rtt)
    }

    /// Returns true if a packet sent at this time was sent before the last reduction, so that its
    /// acknowledgement does not end recovery.
    pub(super) fn precedes(&self, sent: Time) -> bool {
        self.start.is_some_and(|start| sent <= start)
    }

    /// Returns true if the acknowledgement of a packet sent at this time must not increase the
    /// window.
    pub(super) fn forbids_growth(&self, sent: Time) -> bool {
        !self.has_collapsed && self.precedes(sent)
    }

    /// Begins a period that covers the packets sent until now.
    pub(super) fn start(&mut self, now: Time) {
        self.start = Some(now);
        self.covered_until = Some(now);
        self.has_collapsed = false;
    }

    /// Covers packets sent until now, because the reduction has not taken effect yet.
    pub(super) fn extend(&mut self, now: Time) {
        self.covered_until = self.covered_until.max(Some(now));
    }

    /// Ends the period on persistent congestion, RFC 9002 appendix B.8.
    ///
    /// Deviates: the period ends only for growth. Earlier packets that are declared lost later
    /// belong to the same congestion event, and would set the threshold to the collapsed window.
    /// TCP keeps the threshold as well, RFC 5681 §3.1.
    pub(super) fn collapse(&mut self, now: Time) {
        self.start(now);
        self.has_collapsed = true;
    }

    /// Ends the period because there was no congestion.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
