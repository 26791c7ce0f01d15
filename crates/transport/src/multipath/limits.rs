//! The limits on path IDs, both ways. RFC 10069 §2.1, §4.6, §4.7.

use std::time::Duration;

use courser_base::Time;
use courser_wire::frame::{MaxPathId, PathsBlocked};
use courser_wire::{Frame, PathId};

use super::writing::write;
use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;
use crate::space::sent::SentFrame;

/// The largest path IDs that both ends permit.
#[derive(Debug)]
pub(super) struct PathIdLimits {
    /// The largest path ID that the peer may use. It rises with each path that is freed.
    own: PathId,
    /// The largest path ID that we may use.
    peer: PathId,
    /// The peer's initial_max_path_id.
    peer_initial: PathId,
    /// Paths that were freed, and for which the limit has not risen yet.
    freed: u32,
    /// Path IDs by which the limit may rise now, and the time at which there is one more.
    allowance: u32,
    refill_at: Option<Time>,
    /// True if MAX_PATH_ID is to be sent.
    is_max_due: bool,
    /// The limit that PATHS_BLOCKED is to report, and the last one that it has reported.
    blocked: Option<PathId>,
    reported: Option<PathId>,
}

impl PathIdLimits {
    pub(super) fn new(own: PathId, peer: PathId) -> Self {
        Self {
            own,
            peer,
            peer_initial: peer,
            freed: 0,
            allowance: BURST,
            refill_at: None,
            is_max_due: false,
            blocked: None,
            reported: None,
        }
    }

    /// Returns the largest path ID that both ends permit.
    pub(super) fn usable(&self) -> PathId {
        self.own.min(self.peer)
    }

    /// Checks a path ID that the peer has sent against the limit that we announced.
    pub(super) fn check(&self, path_id: u64) -> Result<PathId, TransportError> {
        let id = PathId::from_wire(path_id).filter(|id| *id <= self.own);
        id.ok_or_else(|| {
            let reason = format!("path {path_id} is above the limit {}", self.own);
            TransportError::protocol_violation(reason)
        })
    }

    /// Permits one more path ID, because a path was freed: at once, or when the pace allows it (limit K277).
    pub(super) fn on_freed(&mut self, now: Time) {
        self.freed += 1;
        self.raise(now);
    }

    /// Permits the path IDs that had to wait. Returns true if the limit rises.
    pub(super) fn on_timeout(&mut self, now: Time) -> bool {
        let before = self.own;
        self.raise(now);
        self.own > before
    }

    /// Returns the time at which the limit may rise again, if paths were freed that wait for it.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.refill_at.filter(|_| self.freed > 0)
    }

    fn raise(&mut self, now: Time) {
        while let Some(at) = self.refill_at.filter(|at| *at <= now) {
            self.allowance += 1;
            self.refill_at = (self.allowance < BURST).then_some(at + REFILL);
        }
        while self.freed > 0 && self.allowance > 0 && self.own < LAST_PATH_ID {
            self.freed -= 1;
            self.allowance -= 1;
            self.own = PathId::new(self.own.value() + 1);
            self.is_max_due = true;
            self.refill_at.get_or_insert(now + REFILL);
        }
        if self.own >= LAST_PATH_ID {
            self.freed = 0;
        }
    }

    /// Reports once for each limit that it prevents the path `wanted` (RFC 10069 §4.7).
    pub(super) fn request_more(&mut self, wanted: PathId) {
        if wanted > self.peer && self.reported != Some(self.peer) {
            self.blocked = Some(self.peer);
        }
    }

    /// Returns true if the frame raises the limit.
    pub(super) fn on_max_path_id(&mut self, limit: u64) -> Result<bool, TransportError> {
        let limit = PathId::from_wire(limit).filter(|limit| *limit >= self.peer_initial);
        let Some(limit) = limit else {
            let reason = "MAX_PATH_ID above 2^32 - 1 or below initial_max_path_id";
            return Err(TransportError::protocol_violation(reason));
        };
        let is_raised = limit > self.peer;
        self.peer = self.peer.max(limit);
        Ok(is_raised)
    }

    pub(super) fn has_frames_to_send(&self) -> bool {
        self.is_max_due || self.blocked.is_some()
    }

    pub(super) fn write_frames(&mut self, packet: &mut PacketBuilder<'_>) {
        if self.is_max_due {
            let frame = Frame::MaxPathId(MaxPathId {
                limit: self.own.value().into(),
            });
            let record = SentFrame::MaxPathId { limit: self.own };
            self.is_max_due = !write(packet, &frame, record);
        }
        if let Some(limit) = self.blocked {
            let frame = Frame::PathsBlocked(PathsBlocked {
                limit: limit.value().into(),
            });
            if write(packet, &frame, SentFrame::PathsBlocked) {
                (self.blocked, self.reported) = (None, Some(limit));
            }
        }
    }

    pub(super) fn on_acked(&mut self, limit: PathId) {
        self.is_max_due &= limit != self.own;
    }

    pub(super) fn on_lost(&mut self) {
        self.is_max_due = true;
    }
}

/// Path IDs beyond the first ones that a peer gets at once, and the time after which it gets one more (limit K277). Each
/// costs connection IDs, routes and frames.
const BURST: u32 = 16;
const REFILL: Duration = Duration::from_millis(3750);

/// The largest path ID of a connection (limit K277).
const MOST_PATH_IDS: u32 = 65_536;
const LAST_PATH_ID: PathId = PathId::new(MOST_PATH_IDS);

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the pace of new path IDs (limit K277, attack A206).
    #[test]
    fn limit_rises_by_a_burst_and_then_at_a_pace_and_ends() {
        let first = PathId::new(3);
        let mut limits = PathIdLimits::new(first, first);
        let mut now = Time::ZERO;
        for _ in 0..100 {
            limits.on_freed(now);
        }
        assert_eq!(limits.own, PathId::new(3 + BURST));
        let mut raised = 0;
        while let Some(at) = limits
            .next_timeout()
            .filter(|at| *at <= Time::ZERO + Duration::from_secs(60))
        {
            now = at;
            raised += u32::from(limits.on_timeout(now));
        }
        assert_eq!(raised, 16, "within a minute");
        limits.own = LAST_PATH_ID;
        assert!(!limits.on_timeout(now + REFILL * 3));
        assert_eq!(limits.next_timeout(), None);
    }
}
