//! The counters that each path has for itself, and those of closed paths.

use super::lane::Lane;
use crate::acknowledger::Arrivals;
use crate::frame_counts::FrameCounts;
use crate::recovery::stats::RecoveryStats;
use crate::traffic::PathTraffic;

/// The counters that each path has for itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathTotals {
    pub(crate) recovery: RecoveryStats,
    pub(crate) frames_sent: FrameCounts,
    pub(crate) arrivals: Arrivals,
}

impl PathTotals {
    pub(super) fn add(&mut self, lane: &Lane) {
        self.recovery += *lane.recovery.stats();
        self.frames_sent += lane.recovery.frames_sent();
        self.arrivals += lane.received.arrivals();
    }
}

/// The counters of paths that were closed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Past {
    pub(super) totals: PathTotals,
    pub(super) traffic: PathTraffic,
}
