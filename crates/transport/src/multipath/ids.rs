//! The connection IDs of the paths that are not at hand. RFC 10069 §3.2.

use std::net::SocketAddr;

use courser_wire::frame::{PathCidsBlocked, PathNewConnectionId, PathRetireConnectionId};
use courser_wire::{ConnectionId, PathId};

use super::unused::UnusedPath;
use super::{Lane, Multipath, Target};
use crate::cid::{ACTIVE_CONNECTION_ID_LIMIT, ConnectionIds, ResetToken, TokenChange};
use crate::error::TransportError;

impl Multipath {
    /// Returns the number of connection IDs that the endpoint should generate.
    pub(crate) fn missing_ids(&self) -> usize {
        let of_lanes = self.lanes.iter().filter(|lane| !self.is_closing(lane.id));
        let of_lanes: usize = of_lanes.map(|lane| lane.ids.missing()).sum();
        let of_unused: usize = self.unused.iter().map(UnusedPath::missing).sum();
        of_lanes + of_unused
    }

    /// Adds an ID that the endpoint generated, to a path that lacks one.
    pub(crate) fn issue(&mut self, id: ConnectionId, token: ResetToken) {
        let needs = |lane: &Lane| lane.ids.missing() > 0 && !self.is_closing(lane.id);
        if let Some(at) = self.lanes.iter().position(needs) {
            self.lanes[at].ids.issue(id, token);
        } else if let Some(path) = self.unused.iter_mut().find(|path| path.missing() > 0) {
            path.issue(id, token);
        }
    }

    /// Returns all connection IDs of ours except those of the path at hand.
    pub(crate) fn active_ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let of_lanes = self.lanes.iter().flat_map(|lane| lane.ids.active());
        of_lanes.chain(self.unused.iter().flat_map(UnusedPath::active))
    }

    /// Removes and returns an ID of ours that is no longer in use.
    pub(crate) fn take_retired(&mut self) -> Option<ConnectionId> {
        let mut lanes = self.lanes.iter_mut();
        self.retired
            .pop()
            .or_else(|| lanes.find_map(|lane| lane.ids.take_retired()))
    }

    /// Returns one change at a time to the reset tokens of the paths that are not at hand, with the path's peer.
    pub(crate) fn poll_token_change(&mut self) -> Option<(Option<SocketAddr>, TokenChange)> {
        if let Some(token) = self.dropped_tokens.pop() {
            return Some((None, TokenChange::Removed(token)));
        }
        self.lanes.iter_mut().find_map(|lane| {
            let change = lane.ids.poll_token_change()?;
            Some((Some(lane.paths.active().tuple().peer), change))
        })
    }

    /// Returns true if a token resets the connection by an ID of a path that is not at hand.
    pub(crate) fn is_reset_token(&self, token: &ResetToken) -> bool {
        let lanes = self.lanes.iter();
        lanes.fold(false, |found, lane| found | lane.ids.is_reset_token(token))
    }

    /// Returns the path that owns one of our connection IDs; `None` for an ID of the path at hand, and an
    /// unknown one.
    pub(crate) fn owner_of(&self, id: &ConnectionId) -> Option<PathId> {
        let lane = self.lanes.iter().find(|lane| lane.ids.has_issued(id));
        let unused = || self.unused.iter().find(|path| path.has_issued(id));
        lane.map(|lane| lane.id)
            .or_else(|| unused().map(|path| path.id()))
    }

    /// Processes PATH_NEW_CONNECTION_ID for a path other than the one at hand.
    pub(crate) fn on_new_connection_id(
        &mut self,
        id: PathId,
        frame: &PathNewConnectionId,
    ) -> Result<(), TransportError> {
        let issued = &frame.issued;
        let same = |ids: &ConnectionIds| ids.has_peer_id(&issued.id);
        let others = self.lanes.iter().filter(|lane| lane.id != id);
        let unused = self.unused.iter().filter(|path| path.id() != id);
        let is_known = others.map(|lane| &lane.ids).any(same)
            || unused
                .filter_map(UnusedPath::peer)
                .any(|ids| ids.has(&issued.id));
        if is_known {
            let reason = format!("connection id {} was issued for another path", issued.id);
            return Err(TransportError::protocol_violation(reason));
        }
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.id == id) {
            return lane.ids.on_new_connection_id_frame(issued);
        }
        match self.unused.iter_mut().find(|path| path.id() == id) {
            Some(path) => path.on_new_connection_id(issued, ACTIVE_CONNECTION_ID_LIMIT),
            None => Ok(()),
        }
    }

    /// Processes PATH_RETIRE_CONNECTION_ID for a path other than the one at hand.
    pub(crate) fn on_retire_connection_id(
        &mut self,
        id: PathId,
        frame: &PathRetireConnectionId,
        used: &ConnectionId,
    ) -> Result<(), TransportError> {
        let sequence = frame.retired.sequence;
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.id == id) {
            return lane.ids.on_retire_connection_id_frame(sequence, used);
        }
        let Some(path) = self.unused.iter_mut().find(|path| path.id() == id) else {
            return Ok(());
        };
        let retired = path.on_retire_connection_id(sequence, used)?;
        self.retired.extend(retired);
        Ok(())
    }

    /// Processes PATH_CIDS_BLOCKED, which requires no answer: IDs are issued as soon as they are missing.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION for a path ID above our limit, or a sequence number above our next one (RFC 10069 §4.7).
    pub(crate) fn on_cids_blocked(
        &self,
        frame: PathCidsBlocked,
        at_hand: &ConnectionIds,
    ) -> Result<(), TransportError> {
        let (id, target) = self.target(frame.path_id)?;
        let next = match target {
            Target::AtHand => Some(at_hand.next_sequence()),
            Target::Lane => {
                let lane = self.lanes.iter().find(|lane| lane.id == id);
                lane.map(|lane| lane.ids.next_sequence())
            }
            Target::Unused => {
                let path = self.unused.iter().find(|path| path.id() == id);
                path.map(UnusedPath::next_sequence)
            }
            Target::Gone => None,
        };
        if next.is_some_and(|next| frame.next_sequence > next) {
            let reason = "PATH_CIDS_BLOCKED expects a sequence number that does not follow";
            return Err(TransportError::protocol_violation(reason));
        }
        Ok(())
    }
}
