//! The recovery period of RFC 9002 §7.3.2.

use courser_base::Time;

/// The round trip after a reduction, in which no sign of congestion is new.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecoveryPeriod {
    start: Option<Time>,
}

impl RecoveryPeriod {
    /// True when a packet sent at this time left before the window was last reduced.
    pub(super) fn covers(&self, sent: Time) -> bool {
        self.start.is_some_and(|start| sent <= start)
    }

    pub(super) fn start(&mut self, now: Time) {
        self.start = Some(now);
    }

    /// RFC 9002 appendix B.8: persistent congestion ends the period.
    pub(super) fn clear(&mut self) {
        self.start = None;
    }
}
