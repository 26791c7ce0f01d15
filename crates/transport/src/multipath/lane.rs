//! The state of a path that is not at hand.

use std::mem;

use courser_base::Time;
use courser_wire::PathId;

use crate::acknowledger::{Acknowledger, ReceivedPackets};
use crate::cid::ConnectionIds;
use crate::path::paths::Paths;
use crate::recovery::LossRecovery;

/// The state of a path that is not at hand.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) id: PathId,
    pub(crate) recovery: LossRecovery,
    pub(crate) paths: Paths,
    pub(crate) ids: ConnectionIds,
    pub(crate) received: ReceivedPackets,
}

impl Lane {
    /// Exchanges this state for that of the path at hand.
    pub(super) fn exchange(
        &mut self,
        current: &mut PathId,
        recovery: &mut LossRecovery,
        paths: &mut Paths,
        ids: &mut ConnectionIds,
        acknowledger: &mut Acknowledger,
    ) {
        mem::swap(&mut self.id, current);
        mem::swap(&mut self.recovery, recovery);
        mem::swap(&mut self.paths, paths);
        mem::swap(&mut self.ids, ids);
        acknowledger.exchange_application(&mut self.received);
    }

    /// Returns the time of the first timer of the path.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let budget = self.paths.active().budget();
        let loss = self.recovery.loss_timer(budget).map(|timer| timer.at());
        [
            self.received.next_timeout(),
            self.recovery.paced_until(),
            self.paths.next_timeout(),
            self.recovery.search_at(),
        ]
        .into_iter()
        .fold(loss, Time::earliest)
    }
}
