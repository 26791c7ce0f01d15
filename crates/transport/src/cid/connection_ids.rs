//! The connection IDs of a connection, both ways. RFC 9000 §5.1.

use courser_base::Time;
use courser_wire::transport_parameters::TransportParameters;
use courser_wire::{ConnectionId, NewConnectionId, PathId};

use super::issued::IssuedIds;
use super::peer::{PeerIds, TokenChange};
use super::rotation::Rotation;
use super::{ACTIVE_CONNECTION_ID_LIMIT, ConnectionIdRotation, ResetToken};
use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;

/// The IDs that we gave to the peer, and those that the peer gave to us.
#[derive(Debug)]
pub(crate) struct ConnectionIds {
    issued: IssuedIds,
    peer: PeerIds,
    /// Sequence number of the newest of our IDs that the peer moved with.
    in_use: u64,
    /// IDs that the peer retired; the endpoint takes them and stops routing them.
    retired: Vec<ConnectionId>,
    /// Decides when our IDs are replaced; `None` if they never are.
    rotation: Option<Box<Rotation>>,
}

impl ConnectionIds {
    /// Starts with the IDs of the handshake.
    pub(crate) fn new(local: ConnectionId, peer: ConnectionId) -> Self {
        Self {
            issued: IssuedIds::new(local),
            peer: PeerIds::new(peer),
            in_use: 0,
            retired: Vec::new(),
            rotation: None,
        }
    }

    /// Creates the IDs of a further path.
    pub(crate) fn of_path(issued: IssuedIds, peer: PeerIds) -> Self {
        Self {
            issued,
            peer,
            in_use: 0,
            retired: Vec::new(),
            rotation: None,
        }
    }

    /// Names the path ID in frames from now on, because the ends have agreed on several paths.
    pub(crate) fn name_path(&mut self, path: PathId) {
        self.issued.name_path(path);
        self.peer.name_path(path);
    }

    /// Replaces our IDs from time to time, counted from `now`.
    pub(crate) fn rotate(mut self, conditions: ConnectionIdRotation, now: Time) -> Self {
        self.rotation = Rotation::new(conditions, now).map(Box::new);
        self
    }

    /// Frees the IDs of a connection that is drained, except the one in use.
    pub(crate) fn free(&mut self) {
        self.issued.free();
        self.peer.free();
        self.retired = Vec::new();
    }

    /// Frees the spare capacity of the lists of IDs.
    pub(crate) fn shrink(&mut self) {
        self.issued.shrink();
        self.peer.shrink();
        self.retired.shrink_to_fit();
    }

    /// Returns the ID that we address the peer by on the path in use.
    #[inline]
    pub(crate) fn destination(&self) -> ConnectionId {
        *self.peer.current()
    }

    /// Returns the sequence number of [`ConnectionIds::destination`].
    pub(crate) fn destination_sequence(&self) -> u64 {
        self.peer.current_sequence()
    }

    /// Sets the ID that the server chose, in a Retry or in its first Initial (RFC 9000 §7.2).
    pub(crate) fn set_handshake_id(&mut self, id: ConnectionId) {
        self.peer.set_handshake_id(id);
    }

    /// Applies the peer's transport parameters.
    ///
    /// # Errors
    ///
    /// TRANSPORT_PARAMETER_ERROR for a preferred address without an ID.
    pub(crate) fn on_peer_parameters(
        &mut self,
        parameters: &TransportParameters,
    ) -> Result<(), TransportError> {
        self.on_peer_limit(parameters.active_connection_id_limit);
        if let Some(token) = parameters.stateless_reset_token {
            self.peer.set_reset_token(token);
        }
        let Some(preferred) = &parameters.preferred_address else {
            return Ok(());
        };
        let limit = ACTIVE_CONNECTION_ID_LIMIT;
        self.peer
            .on_preferred_address(preferred.id, preferred.reset_token, limit)
    }

    /// Sets the limit to the peer's `active_connection_id_limit`.
    pub(crate) fn on_peer_limit(&mut self, active_connection_id_limit: u64) {
        self.issued.on_peer_limit(active_connection_id_limit);
    }

    /// Returns true if the ID is one of ours.
    pub(crate) fn has_issued(&self, id: &ConnectionId) -> bool {
        self.issued.sequence_of(id).is_some()
    }

    /// Returns true if the peer has issued the ID, and we have not retired it.
    pub(crate) fn has_peer_id(&self, id: &ConnectionId) -> bool {
        self.peer.has(id)
    }

    /// Returns the sequence number of the next ID of ours.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.issued.next_sequence()
    }

    /// Retires all IDs of ours, because their path is closed. The endpoint takes them.
    pub(crate) fn retire_all(&mut self) {
        let active = self.issued.active();
        self.retired.extend(active);
        self.issued.free();
    }

    /// Returns the number of IDs that the endpoint should generate.
    pub(crate) fn missing(&self) -> usize {
        self.issued.missing()
    }

    /// Adds an ID that the endpoint generated, to be sent to the peer.
    pub(crate) fn issue(&mut self, id: ConnectionId, token: ResetToken) {
        self.issued.issue(id, token);
    }

    /// Adds the ID that is sent in the preferred_address transport parameter.
    pub(crate) fn issue_preferred(&mut self, id: ConnectionId, token: ResetToken) {
        self.issued.issue_preferred(id, token);
    }

    /// Returns all IDs that the peer may address us by.
    pub(crate) fn active(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.issued.active()
    }

    /// Removes and returns an ID that the peer retired.
    pub(crate) fn take_retired(&mut self) -> Option<ConnectionId> {
        self.retired.pop()
    }

    /// Returns one change at a time to the tokens that reset this connection.
    #[inline(always)]
    pub(crate) fn poll_token_change(&mut self) -> Option<TokenChange> {
        self.peer.poll_token_change()
    }

    /// Removes and returns the tokens that the endpoint was told of, because their path is closed.
    pub(crate) fn take_reported_tokens(&mut self) -> Vec<ResetToken> {
        self.peer.take_reported_tokens()
    }

    /// Returns true if `token` resets this connection (RFC 9000 §10.3.1).
    pub(crate) fn is_reset_token(&self, token: &ResetToken) -> bool {
        self.peer.is_reset_token(token)
    }

    /// Processes a NEW_CONNECTION_ID frame.
    ///
    /// # Errors
    ///
    /// As [`PeerIds::on_new_connection_id_frame`].
    pub(crate) fn on_new_connection_id_frame(
        &mut self,
        frame: &NewConnectionId,
    ) -> Result<(), TransportError> {
        self.peer
            .on_new_connection_id_frame(frame, ACTIVE_CONNECTION_ID_LIMIT)
    }

    /// Processes a RETIRE_CONNECTION_ID frame from a packet that was sent to `destination`.
    ///
    /// # Errors
    ///
    /// As [`IssuedIds::on_retire_connection_id_frame`].
    pub(crate) fn on_retire_connection_id_frame(
        &mut self,
        sequence: u64,
        destination: &ConnectionId,
    ) -> Result<(), TransportError> {
        let retired = self
            .issued
            .on_retire_connection_id_frame(sequence, destination)?;
        self.retired.extend(retired);
        Ok(())
    }

    /// Records that the peer moved to another path and sends to `destination` there. Returns true if that is
    /// a newer ID than before.
    pub(crate) fn on_peer_moved(&mut self, destination: &ConnectionId) -> bool {
        let sequence = self.issued.sequence_of(destination);
        let newer = sequence.filter(|&sequence| sequence > self.in_use);
        self.in_use = newer.unwrap_or(self.in_use);
        newer.is_some()
    }

    /// Returns the ID of the peer with a sequence number, unless it has been retired.
    pub(crate) fn id_of(&self, sequence: u64) -> Option<ConnectionId> {
        self.peer.id_of(sequence).copied()
    }

    /// Reserves a spare ID of the peer for a path that is not in use. Returns `None` if there is none.
    pub(crate) fn reserve(&mut self) -> Option<(u64, ConnectionId)> {
        self.peer.reserve()
    }

    /// Retires an ID of the peer that its path no longer uses.
    pub(crate) fn give_up(&mut self, sequence: u64) {
        self.peer.give_up(sequence);
    }

    /// Addresses the peer by the ID that is reserved for the path that comes into use, or by a
    /// spare one.
    pub(crate) fn switch(&mut self, reserved: Option<u64>) {
        if reserved.is_some_and(|id| self.peer.switch_to(id)) {
            return;
        }
        if let Some(id) = reserved {
            self.peer.give_up(id);
        }
        self.peer.switch_to_next();
    }

    /// Addresses the peer by the ID that is reserved for the path that comes into use, and reserves the
    /// previous ID for the path that is left. Returns false if the reserved ID has been retired.
    pub(crate) fn exchange(&mut self, reserved: u64) -> bool {
        self.peer.exchange(reserved)
    }

    /// Asks the peer to retire our IDs if a rotation is due, so that [`ConnectionIds::missing`] counts
    /// their replacements. `received` counts the datagrams since the connection began.
    #[inline]
    pub(crate) fn on_received(&mut self, now: Time, received: u64) {
        if let Some(rotation) = &mut self.rotation
            && rotation.is_due(now, received)
            && self.issued.rotate(self.issued.next_sequence())
        {
            rotation.on_rotated(now, received);
        }
    }

    /// Returns true if a frame waits to be sent.
    #[inline(always)]
    pub(crate) fn has_frames_to_send(&self) -> bool {
        self.issued.has_frames_to_send() || self.peer.has_frames_to_send()
    }

    /// Writes NEW_CONNECTION_ID and RETIRE_CONNECTION_ID frames, as many as wait and fit.
    #[inline]
    pub(crate) fn write_frames(&mut self, packet: &mut PacketBuilder<'_>) {
        self.issued.write_frames(packet);
        self.peer.write_frames(packet);
    }

    /// Processes the acknowledgement of NEW_CONNECTION_ID.
    pub(crate) fn on_new_connection_id_acked(&mut self, sequence: u64) {
        self.issued.on_acked(sequence);
    }

    /// Sends a lost NEW_CONNECTION_ID again, unless the peer has received the ID meanwhile.
    pub(crate) fn on_new_connection_id_lost(&mut self, sequence: u64) {
        self.issued.on_lost(sequence);
    }

    /// Processes the acknowledgement of RETIRE_CONNECTION_ID.
    pub(crate) fn on_retire_connection_id_acked(&mut self, sequence: u64) {
        self.peer.on_retirement_acked(sequence);
    }

    /// Sends a lost RETIRE_CONNECTION_ID again.
    pub(crate) fn on_retire_connection_id_lost(&mut self, sequence: u64) {
        self.peer.on_retirement_lost(sequence);
    }

    /// Returns the IDs that the peer gave to us.
    #[cfg(test)]
    pub(crate) fn peer(&mut self) -> &mut PeerIds {
        &mut self.peer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> ConnectionId {
        ConnectionId::new(&[byte; 8]).expect("eight bytes")
    }

    /// Creates the IDs of a connection both of whose ends have two.
    fn ids() -> ConnectionIds {
        let mut ids = ConnectionIds::new(id(1), id(101));
        let parameters = TransportParameters {
            active_connection_id_limit: 2,
            ..TransportParameters::default()
        };
        ids.on_peer_parameters(&parameters).expect("no address");
        ids.issue(id(2), [2; 16]);
        ids.on_new_connection_id_frame(&NewConnectionId {
            sequence: 1,
            retire_prior_to: 0,
            id: id(102),
            reset_token: [102; 16],
        })
        .expect("within the limit");
        ids
    }

    #[test]
    fn move_of_the_peer_with_a_newer_id_is_reported_once() {
        let mut ids = ids();
        assert!(!ids.on_peer_moved(&id(1)), "the first one");
        assert!(ids.on_peer_moved(&id(2)));
        assert!(!ids.on_peer_moved(&id(2)));
        assert!(!ids.on_peer_moved(&id(9)), "never issued");
    }

    #[test]
    fn path_that_comes_into_use_keeps_its_reserved_id() {
        let mut ids = ids();
        let (sequence, reserved) = ids.reserve().expect("a spare one");
        assert_eq!((sequence, reserved), (1, id(102)));
        assert_eq!(ids.destination(), id(101));
        ids.switch(Some(sequence));
        assert_eq!(ids.destination(), id(102));
        assert!(ids.has_frames_to_send(), "the old one is retired");
    }

    #[test]
    fn paths_that_exchange_places_keep_their_ids() {
        let mut ids = ids();
        let (sequence, _) = ids.reserve().expect("a spare one");
        assert!(ids.exchange(sequence));
        assert_eq!(ids.destination(), id(102));
        assert_eq!(ids.id_of(0), Some(id(101)), "reserved for the other path");
        assert_eq!(ids.peer().open_retirements(), 0);
        assert!(ids.reserve().is_none(), "both are in use");
        ids.give_up(0);
        assert_eq!(ids.peer().open_retirements(), 1);
        assert!(!ids.exchange(0), "it is retired");
    }

    #[test]
    fn without_a_reserved_id_a_spare_one_is_used_if_there_is_one() {
        let mut ids = ids();
        ids.switch(None);
        assert_eq!(ids.destination(), id(102));
        ids.switch(None);
        assert_eq!(ids.destination(), id(102), "there is no other");
    }

    #[test]
    fn retired_ids_are_returned_to_the_endpoint() {
        let mut ids = ids();
        let (mut room, mut lists) = ([0; 100], crate::space::sent::FrameLists::default());
        ids.write_frames(&mut PacketBuilder::new(&mut room, &mut lists));
        ids.on_retire_connection_id_frame(1, &id(1)).expect("sent");
        assert_eq!(ids.take_retired(), Some(id(2)));
        assert_eq!(ids.take_retired(), None);
        assert_eq!(ids.missing(), 1);
    }
}
