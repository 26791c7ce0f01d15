//! The connection IDs that we gave to the peer (RFC 9000 §5.1.1).

use std::fmt;

use courser_wire::{ConnectionId, Frame, NewConnectionId, PathId, PathNewConnectionId};

use super::{ACTIVE_CONNECTION_ID_LIMIT, ResetToken};
use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;
use crate::space::sent::SentFrame;

/// The IDs under which the peer may address this connection.
///
/// The caller makes IDs and tokens, because both belong to the endpoint: it routes by the IDs and
/// answers with the tokens when the connection is gone. This type decides sequence numbers, limits
/// and delivery. An ID is accepted until the peer retires it, even if we asked for its retirement
/// (RFC 9000 §5.1.1).
#[derive(Debug)]
pub struct IssuedIds {
    /// The path ID that the IDs belong to, if the ends have agreed on several paths.
    path: Option<PathId>,
    /// The IDs in ascending order of their sequence numbers; at most [`IssuedIds::MAX_IDS`].
    ids: Vec<Issued>,
    next_sequence: u64,
    /// The peer was or will be asked to retire the IDs below this sequence number.
    retire_prior_to: u64,
    /// Maximum of active IDs; zero until the peer has announced its limit.
    limit: usize,
}

impl IssuedIds {
    /// Maximum of IDs in the table: a full set that the peer was asked to retire, and its
    /// replacement.
    pub const MAX_IDS: usize = 2 * MAX_ACTIVE;

    /// Starts with the ID of the handshake, which has sequence number 0. An empty ID means that the
    /// peer addresses us without IDs; then no other ID is ever issued.
    pub fn new(handshake_id: ConnectionId) -> Self {
        let mut ids = Vec::with_capacity(MAX_ACTIVE);
        // The token of this ID, if it has one, is sent in the transport parameters.
        let delivery = Delivery::Acked;
        ids.push(Issued {
            sequence: 0,
            id: handshake_id,
            token: [0; 16],
            delivery,
        });
        Self {
            path: None,
            ids,
            next_sequence: 1,
            retire_prior_to: 0,
            limit: 0,
        }
    }

    /// Starts without IDs for a further path, whose sequence numbers begin at 0 (RFC 10069 §3.2). At most `limit` IDs are
    /// issued until [`IssuedIds::on_peer_limit`].
    pub fn of_path(path: PathId, limit: u64) -> Self {
        let mut ids = Self {
            path: Some(path),
            ids: Vec::new(),
            next_sequence: 0,
            retire_prior_to: 0,
            limit: 0,
        };
        ids.on_peer_limit(limit);
        ids
    }

    /// Sends the IDs in frames that name their path ID from now on.
    pub fn name_path(&mut self, path: PathId) {
        self.path = Some(path);
    }

    /// Frees the IDs of a connection that no packet reaches any more. No more IDs are requested.
    pub(crate) fn free(&mut self) {
        self.ids = Vec::new();
        self.limit = 0;
    }

    /// Frees the spare capacity of the list of IDs.
    pub(crate) fn shrink(&mut self) {
        self.ids.shrink_to_fit();
    }

    /// Sets the limit to the peer's `active_connection_id_limit`.
    pub fn on_peer_limit(&mut self, active_connection_id_limit: u64) {
        let limit = active_connection_id_limit.min(ACTIVE_CONNECTION_ID_LIMIT);
        self.limit = usize::try_from(limit).expect("at most ACTIVE_CONNECTION_ID_LIMIT");
    }

    /// Returns the number of IDs that the caller should generate now, replacements for retired ones
    /// included (RFC 9000 §5.1.1).
    ///
    /// IDs that the peer was asked to retire do not count, because the peer applies the request
    /// before it counts.
    pub fn missing(&self) -> usize {
        if self.is_zero_length() {
            return 0; // RFC 9000 §19.15: an empty ID cannot be replaced.
        }
        let staying = self
            .ids
            .iter()
            .filter(|issued| issued.sequence >= self.retire_prior_to);
        self.limit.saturating_sub(staying.count())
    }

    /// Adds an ID that is to be sent to the peer, and returns its sequence number.
    ///
    /// Call it [`IssuedIds::missing`] times. The ID must never have belonged to this
    /// connection.
    pub fn issue(&mut self, id: ConnectionId, token: ResetToken) -> u64 {
        debug_assert!(self.missing() > 0, "more connection ids than are missing");
        self.add(id, token, Delivery::Unsent)
    }

    /// Adds the ID for the preferred_address transport parameter, which needs no frame. It must be
    /// the first after the handshake ID, because its sequence number is 1 by definition (RFC 9000
    /// §5.1.1).
    ///
    /// # Panics
    ///
    /// When another ID was issued before, or the handshake ID is empty (RFC 9000 §18.2).
    pub fn issue_preferred(&mut self, id: ConnectionId, token: ResetToken) -> u64 {
        assert!(
            self.next_sequence == 1,
            "the preferred address takes sequence number 1"
        );
        assert!(
            !self.is_zero_length(),
            "no preferred address without connection ids"
        );
        self.add(id, token, Delivery::Acked)
    }

    fn add(&mut self, id: ConnectionId, token: ResetToken, delivery: Delivery) -> u64 {
        debug_assert!(!id.is_empty(), "issued connection ids are not empty");
        debug_assert!(
            self.sequence_of(&id).is_none(),
            "the same connection id issued twice"
        );
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.ids.push(Issued {
            sequence,
            id,
            token,
            delivery,
        });
        debug_assert!(self.ids.len() <= Self::MAX_IDS);
        sequence
    }

    /// Asks the peer, in the next frames, to retire all IDs below a sequence number.
    ///
    /// Afterwards [`IssuedIds::missing`] counts the replacements. Returns false and does nothing while
    /// the peer still has IDs of an earlier request to retire (RFC 9000 §5.1.2), if nothing would
    /// be retired, or if no replacement could be issued.
    pub fn rotate(&mut self, retire_prior_to: u64) -> bool {
        let is_pending = self
            .ids
            .iter()
            .any(|issued| issued.sequence < self.retire_prior_to);
        let retires = self
            .ids
            .iter()
            .any(|issued| issued.sequence < retire_prior_to);
        let is_possible = !self.is_zero_length() && self.limit > 0;
        if is_pending || !retires || !is_possible || retire_prior_to > self.next_sequence {
            return false;
        }
        self.retire_prior_to = retire_prior_to;
        true
    }

    /// Returns true if an ID waits to be sent to the peer.
    #[inline]
    pub fn has_frames_to_send(&self) -> bool {
        self.ids.iter().any(Issued::is_to_be_sent)
    }

    /// Writes the NEW_CONNECTION_ID frames that wait, as many as fit.
    #[inline]
    pub fn write_frames(&mut self, packet: &mut PacketBuilder<'_>) {
        if self.has_frames_to_send() {
            self.write_some(packet);
        }
    }

    #[inline(never)]
    fn write_some(&mut self, packet: &mut PacketBuilder<'_>) {
        for issued in self.ids.iter_mut().filter(|issued| issued.is_to_be_sent()) {
            let frame = NewConnectionId {
                sequence: issued.sequence,
                // A repeated frame may be older than the request. RFC 9000 §19.15 allows no larger
                // value in this one; the replacements carry the whole request.
                retire_prior_to: self.retire_prior_to.min(issued.sequence),
                id: issued.id,
                reset_token: issued.token,
            };
            let sequence = issued.sequence;
            let (frame, record) = match self.path {
                None => (
                    Frame::NewConnectionId(frame),
                    SentFrame::NewConnectionId { sequence },
                ),
                Some(path) => (
                    Frame::PathNewConnectionId(PathNewConnectionId {
                        path_id: path.value().into(),
                        issued: frame,
                    }),
                    SentFrame::PathNewConnectionId { path, sequence },
                ),
            };
            if packet.remaining() < frame.encoded_len() {
                return;
            }
            frame.encode(packet.writer());
            packet.record(record);
            issued.delivery = Delivery::InFlight;
        }
    }

    /// Processes the peer's retirement of an ID.
    ///
    /// Returns the ID whose route the endpoint must remove; `None` for a repetition.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when the sequence number was never sent, when it belongs to the
    /// destination of the very packet that carries the frame, or when our ID is empty (RFC 9000
    /// §19.16).
    pub fn on_retire_connection_id_frame(
        &mut self,
        sequence: u64,
        id_of_carrying_packet: &ConnectionId,
    ) -> Result<Option<ConnectionId>, TransportError> {
        if self.is_zero_length() {
            let reason = "RETIRE_CONNECTION_ID for a zero-length connection id";
            return Err(TransportError::protocol_violation(reason));
        }
        if sequence >= self.next_sequence {
            let reason = format!(
                "connection id {sequence} retired, {} issued",
                self.next_sequence
            );
            return Err(TransportError::protocol_violation(reason));
        }
        let Some(index) = self
            .ids
            .iter()
            .position(|issued| issued.sequence == sequence)
        else {
            return Ok(None);
        };
        let issued = &self.ids[index];
        if issued.delivery == Delivery::Unsent {
            let reason = format!("connection id {sequence} retired before it was sent");
            return Err(TransportError::protocol_violation(reason));
        }
        if issued.id == *id_of_carrying_packet {
            let reason = format!("connection id {sequence} retired by a packet that uses it");
            return Err(TransportError::protocol_violation(reason));
        }
        Ok(Some(self.ids.remove(index).id))
    }

    /// Processes the acknowledgement of the NEW_CONNECTION_ID frame with this sequence number.
    pub fn on_acked(&mut self, sequence: u64) {
        if let Some(issued) = self.find(sequence) {
            issued.delivery = Delivery::Acked;
        }
    }

    /// Sends a lost NEW_CONNECTION_ID frame again, unless the peer has received the ID meanwhile.
    pub fn on_lost(&mut self, sequence: u64) {
        if let Some(issued) = self.find(sequence)
            && issued.delivery == Delivery::InFlight
        {
            issued.delivery = Delivery::Lost;
        }
    }

    /// Returns the IDs that the peer may use, oldest first: packets to any of them are ours.
    pub fn active(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.ids.iter().map(|issued| issued.id)
    }

    /// Returns the sequence number of an ID that has not been retired.
    pub fn sequence_of(&self, id: &ConnectionId) -> Option<u64> {
        self.ids
            .iter()
            .find(|issued| issued.id == *id)
            .map(|issued| issued.sequence)
    }

    /// Returns the sequence number of the next ID: `rotate(next_sequence())` replaces all.
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Returns true if the peer addresses us without IDs. If the handshake ID is empty, it stays
    /// the only one.
    pub fn is_zero_length(&self) -> bool {
        self.ids.first().is_some_and(|issued| issued.id.is_empty())
    }

    fn find(&mut self, sequence: u64) -> Option<&mut Issued> {
        self.ids
            .iter_mut()
            .find(|issued| issued.sequence == sequence)
    }
}

/// [`ACTIVE_CONNECTION_ID_LIMIT`] as a length.
const MAX_ACTIVE: usize = ACTIVE_CONNECTION_ID_LIMIT as usize;

struct Issued {
    sequence: u64,
    id: ConnectionId,
    token: ResetToken,
    delivery: Delivery,
}

impl Issued {
    fn is_to_be_sent(&self) -> bool {
        matches!(self.delivery, Delivery::Unsent | Delivery::Lost)
    }
}

/// Omits the tokens, which are secrets and stay out of logs.
impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {:?}", self.sequence, self.id, self.delivery)
    }
}

/// The delivery state of the frame that gives an ID to the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Delivery {
    Unsent,
    InFlight,
    Lost,
    Acked,
}

#[cfg(test)]
mod tests;
