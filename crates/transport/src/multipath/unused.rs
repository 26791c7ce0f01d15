//! A path ID that may be opened: the connection IDs that both ends have issued for it. RFC 10069 §3.2.1.

use courser_wire::frame::PathCidsBlocked;
use courser_wire::{ConnectionId, Frame, NewConnectionId, PathId};

use super::control::PathPreference;
use super::writing::write;
use crate::build::packet_builder::PacketBuilder;
use crate::cid::{ConnectionIds, IssuedIds, PeerIds, ResetToken};
use crate::error::TransportError;
use crate::space::sent::SentFrame;

/// The connection IDs of a path that is not open yet.
#[derive(Debug)]
pub(super) struct UnusedPath {
    id: PathId,
    issued: IssuedIds,
    peer: Option<PeerIds>,
    /// The status that the peer has announced for it.
    status: Option<(u64, PathPreference)>,
    /// True if PATH_CIDS_BLOCKED is to be sent, and true once it was.
    is_blocked: bool,
    was_reported: bool,
}

impl UnusedPath {
    pub(super) fn new(id: PathId) -> Self {
        Self {
            id,
            // One is enough until the path opens.
            issued: IssuedIds::of_path(id, 1),
            peer: None,
            status: None,
            is_blocked: false,
            was_reported: false,
        }
    }

    pub(super) fn id(&self) -> PathId {
        self.id
    }

    pub(super) fn peer(&self) -> Option<&PeerIds> {
        self.peer.as_ref()
    }

    /// Returns true if both ends have issued an ID.
    pub(super) fn has_both(&self) -> bool {
        self.peer.is_some() && self.issued.next_sequence() > 0
    }

    /// Returns the connection IDs of the path that opens.
    pub(super) fn into_ids(self) -> Option<ConnectionIds> {
        Some(ConnectionIds::of_path(self.issued, self.peer?))
    }

    /// Reports once that the peer's connection ID is missing.
    pub(super) fn request_ids(&mut self) {
        self.is_blocked = self.peer.is_none() && !self.was_reported;
    }

    pub(super) fn has_issued(&self, id: &ConnectionId) -> bool {
        self.issued.sequence_of(id).is_some()
    }

    pub(super) fn next_sequence(&self) -> u64 {
        self.issued.next_sequence()
    }

    pub(super) fn missing(&self) -> usize {
        self.issued.missing()
    }

    pub(super) fn issue(&mut self, id: ConnectionId, token: ResetToken) {
        self.issued.issue(id, token);
    }

    pub(super) fn active(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.issued.active()
    }

    pub(super) fn on_new_connection_id(
        &mut self,
        frame: &NewConnectionId,
        limit: u64,
    ) -> Result<(), TransportError> {
        match &mut self.peer {
            Some(peer) => peer.on_new_connection_id_frame(frame, limit),
            None => {
                self.peer = Some(PeerIds::of_path(self.id, frame)?);
                Ok(())
            }
        }
    }

    pub(super) fn on_retire_connection_id(
        &mut self,
        sequence: u64,
        used: &ConnectionId,
    ) -> Result<Option<ConnectionId>, TransportError> {
        self.issued.on_retire_connection_id_frame(sequence, used)
    }

    pub(super) fn on_status(&mut self, sequence: u64, status: PathPreference) {
        if self.status.is_none_or(|(last, _)| sequence > last) {
            self.status = Some((sequence, status));
        }
    }

    pub(super) fn on_acked(&mut self, sequence: u64) {
        self.issued.on_acked(sequence);
    }

    pub(super) fn on_lost(&mut self, sequence: u64) {
        self.issued.on_lost(sequence);
    }

    pub(super) fn has_frames_to_send(&self) -> bool {
        let retires = self.peer.as_ref().is_some_and(PeerIds::has_frames_to_send);
        self.is_blocked || self.issued.has_frames_to_send() || retires
    }

    pub(super) fn write_frames(&mut self, packet: &mut PacketBuilder<'_>) {
        self.issued.write_frames(packet);
        if let Some(peer) = &mut self.peer {
            peer.write_frames(packet);
        }
        if self.is_blocked {
            let frame = Frame::PathCidsBlocked(PathCidsBlocked {
                path_id: self.id.value().into(),
                next_sequence: 0,
            });
            let is_written = write(packet, &frame, SentFrame::PathCidsBlocked);
            self.is_blocked = !is_written;
            self.was_reported |= is_written;
        }
    }
}
