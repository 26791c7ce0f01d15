//! The connection IDs that the peer gave to us (RFC 9000 §5.1.2).

use std::fmt;
use std::mem;

use courser_base::RangeSet;
use courser_crypto::reset_token;
use courser_wire::{ConnectionId, NewConnectionId, PathId, TransportErrorCode};

use super::ResetToken;
use super::retirements::Retirements;
use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;

/// The IDs by which we may address the peer: one in use, the others spare or reserved for paths
/// that are being probed.
///
/// A peer can make us retire IDs as fast as it can send frames. It can make us store only a handful
/// of IDs, [`MAX_RETIREMENTS`](super::retirements::MAX_RETIREMENTS) retirements and
/// [`MAX_SEQUENCE_RANGES`] ranges; more ends the connection. Loops run over stored entries only,
/// never over the numbers that a frame contains (attack A30).
pub struct PeerIds {
    current: Held,
    /// All other IDs, at most `our_limit` of them.
    others: Vec<Held>,
    /// Every sequence number that has arrived, so that each is retired once.
    seen: RangeSet,
    /// The largest Retire Prior To that has arrived.
    retire_prior_to: u64,
    retirements: Retirements,
    /// The reset tokens that [`PeerIds::poll_token_change`] has reported as added.
    reported_tokens: Vec<ResetToken>,
}

/// Maximum of ranges of sequence numbers with gaps between them. Numbers are consecutive (RFC 9000
/// §5.1.1), so gaps are frames in flight, of which an honest peer has few.
pub const MAX_SEQUENCE_RANGES: usize = 32;

/// A change to the tokens that identify a stateless reset for this connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TokenChange {
    /// The token of an ID that is now in use.
    Added(ResetToken),
    /// The token of an ID that is no longer in use.
    Removed(ResetToken),
}

impl PeerIds {
    /// Starts with the ID of the handshake, which has sequence number 0. On a client it is the random
    /// ID that it chose for the server, and on a server the client's source ID.
    pub fn new(first: ConnectionId) -> Self {
        let mut seen = RangeSet::new();
        seen.insert_one(0);
        Self {
            current: Held {
                sequence: 0,
                id: first,
                token: None,
                is_used: true,
                is_given_up: false,
            },
            others: Vec::new(),
            seen,
            retire_prior_to: 0,
            retirements: Retirements::default(),
            reported_tokens: Vec::new(),
        }
    }

    /// Starts with the first ID that has arrived for a further path. It is in use once the path opens.
    ///
    /// # Errors
    ///
    /// FRAME_ENCODING_ERROR if the frame contradicts itself (RFC 10069 §4.4).
    pub fn of_path(path: PathId, frame: &NewConnectionId) -> Result<Self, TransportError> {
        let mut ids = Self::new(frame.id);
        ids.current.sequence = frame.sequence;
        ids.current.token = Some(frame.reset_token);
        ids.check(frame)?;
        ids.seen = RangeSet::new();
        ids.seen.insert_one(frame.sequence);
        ids.retire_prior_to = frame.retire_prior_to;
        ids.name_path(path);
        Ok(ids)
    }

    /// Retires IDs in frames that name their path ID from now on.
    pub fn name_path(&mut self, path: PathId) {
        self.retirements.path = Some(path);
    }

    /// Frees the IDs of a connection that sends nothing any more, except the one in use.
    pub(crate) fn free(&mut self) {
        *self = Self::new(self.current.id);
    }

    /// Frees the spare capacity of all lists.
    pub(crate) fn shrink(&mut self) {
        self.others.shrink_to_fit();
        self.seen.shrink();
        self.retirements.open.shrink_to_fit();
        self.reported_tokens.shrink_to_fit();
    }

    /// Sets the ID that the server chose, in a Retry or in its first Initial (RFC 9000 §7.2).
    pub fn set_handshake_id(&mut self, id: ConnectionId) {
        debug_assert!(self.current.sequence == 0, "the handshake is over");
        self.current.id = id;
    }

    /// Sets the token from the stateless_reset_token transport parameter, which belongs to the
    /// handshake ID.
    pub fn set_reset_token(&mut self, token: ResetToken) {
        if self.current.sequence == 0 {
            self.current.token = Some(token);
        }
    }

    /// Adds the ID from the preferred_address transport parameter, sequence number 1.
    ///
    /// # Errors
    ///
    /// TRANSPORT_PARAMETER_ERROR when the ID is empty or the peer had chosen to be addressed
    /// without IDs (RFC 9000 §18.2); otherwise the errors of
    /// [`PeerIds::on_new_connection_id_frame`].
    pub fn on_preferred_address(
        &mut self,
        id: ConnectionId,
        reset_token: ResetToken,
        our_limit: u64,
    ) -> Result<(), TransportError> {
        if id.is_empty() || self.current.id.is_empty() {
            let code = TransportErrorCode::TRANSPORT_PARAMETER_ERROR;
            return Err(TransportError::new(
                code,
                "preferred address with an empty connection id",
            ));
        }
        let frame = NewConnectionId {
            sequence: 1,
            retire_prior_to: 0,
            id,
            reset_token,
        };
        self.on_new_connection_id_frame(&frame, our_limit)
    }

    /// Returns the ID for packets on the current path.
    pub fn current(&self) -> &ConnectionId {
        &self.current.id
    }

    /// Returns the sequence number of [`PeerIds::current`].
    pub fn current_sequence(&self) -> u64 {
        self.current.sequence
    }

    /// Returns the number of IDs that are neither in use nor reserved.
    #[cfg(test)]
    pub fn spare(&self) -> usize {
        self.others.iter().filter(|held| !held.is_used).count()
    }

    /// Adds an ID from the peer, and retires older ones if the frame asks for it.
    ///
    /// `our_limit` is the active_connection_id_limit that we announced.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when the peer is addressed without IDs, or contradicts an earlier frame
    /// about a sequence number or an ID; FRAME_ENCODING_ERROR when the frame contradicts itself
    /// (RFC 9000 §19.15). CONNECTION_ID_LIMIT_ERROR when more IDs are active than `our_limit`,
    /// counted after retirement (RFC 9000 §5.1.1), or when more retirements are unacknowledged than
    /// [`MAX_RETIREMENTS`](super::retirements::MAX_RETIREMENTS) (RFC 9000 §5.1.2).
    pub fn on_new_connection_id_frame(
        &mut self,
        frame: &NewConnectionId,
        our_limit: u64,
    ) -> Result<(), TransportError> {
        self.check(frame)?;
        let is_new = self.seen.insert_one(frame.sequence);
        if self.seen.len() > MAX_SEQUENCE_RANGES {
            return Err(limit_error(format!(
                "{} ranges of sequence numbers exceed limit {MAX_SEQUENCE_RANGES}",
                self.seen.len()
            )));
        }
        if frame.retire_prior_to > self.retire_prior_to {
            self.retire_prior_to = frame.retire_prior_to;
            self.retire_old()?;
        }
        if is_new && frame.sequence < self.retire_prior_to {
            // The request to retire this ID overtook it. Without an answer the peer would wait for
            // the retirement indefinitely (RFC 9000 §19.15).
            self.retirements.add(frame.sequence)?;
        } else if is_new {
            self.others.push(Held {
                sequence: frame.sequence,
                id: frame.id,
                token: Some(frame.reset_token),
                is_used: false,
                is_given_up: false,
            });
        }
        self.leave_retired_current()?;
        self.check_limit(our_limit)
    }

    fn check(&self, frame: &NewConnectionId) -> Result<(), TransportError> {
        if self.current.id.is_empty() {
            let reason = "NEW_CONNECTION_ID although the peer chose a zero-length connection id";
            return Err(TransportError::protocol_violation(reason));
        }
        if frame.id.is_empty() {
            return Err(TransportError::frame_encoding(
                "NEW_CONNECTION_ID with an empty id",
            ));
        }
        let NewConnectionId {
            sequence,
            retire_prior_to,
            ..
        } = *frame;
        if retire_prior_to > sequence {
            let reason = format!("retire prior to {retire_prior_to} exceeds sequence {sequence}");
            return Err(TransportError::frame_encoding(reason));
        }
        let contradicts = |held: &&Held| {
            let same_id = held.id == frame.id;
            let same_content = same_id && held.token == Some(frame.reset_token);
            if held.sequence == sequence {
                !same_content
            } else {
                same_id
            }
        };
        match self.held().find(contradicts) {
            None => Ok(()),
            Some(held) => Err(TransportError::protocol_violation(format!(
                "connection id {} was {}, now {sequence} is {}",
                held.sequence, held.id, frame.id
            ))),
        }
    }

    /// Retires the IDs that the peer asked for, except the current one, which needs a successor
    /// first.
    fn retire_old(&mut self) -> Result<(), TransportError> {
        let mut index = 0;
        while index < self.others.len() {
            if self.others[index].sequence < self.retire_prior_to {
                let old = self.others.swap_remove(index);
                self.retirements.add(old.sequence)?;
            } else {
                index += 1;
            }
        }
        Ok(())
    }

    /// Changes to another ID when the peer asks us to retire the current one.
    ///
    /// The frame that asks for it nearly always contains a successor. If it repeats an ID that we
    /// have retired already, none may be left, and without an ID we could not even send the
    /// retirement. Then the current ID stays until the next frame.
    fn leave_retired_current(&mut self) -> Result<(), TransportError> {
        if self.current.sequence >= self.retire_prior_to {
            return Ok(());
        }
        // An ID reserved for another path is better than one that the peer discards.
        let next = (0..self.others.len()).min_by_key(|&index| {
            let held = &self.others[index];
            (held.is_given_up, held.is_used, held.sequence)
        });
        match next {
            None => Ok(()),
            Some(index) => {
                let old = self.replace_current(index);
                self.retirements.add(old)
            }
        }
    }

    fn check_limit(&self, our_limit: u64) -> Result<(), TransportError> {
        let active = 1 + self.others.len();
        if active as u64 > our_limit {
            let reason = format!("{active} active connection ids exceed limit {our_limit}");
            return Err(limit_error(reason));
        }
        Ok(())
    }

    /// Changes to the spare ID with the lowest sequence number and retires the current one.
    ///
    /// Returns false and does nothing if there is no spare ID or while too many of our retirements
    /// are unacknowledged.
    pub fn switch_to_next(&mut self) -> bool {
        match self.next_spare() {
            Some(index) => self.switch_to_index(index),
            None => false,
        }
    }

    /// Reserves a spare ID for a path other than the current one: no ID may appear on two (RFC 9000
    /// §9.5).
    ///
    /// The peer may ask us to retire it, so look it up with [`PeerIds::id_of`] before each use.
    pub fn reserve(&mut self) -> Option<(u64, ConnectionId)> {
        let index = self.next_spare()?;
        let held = &mut self.others[index];
        held.is_used = true;
        Some((held.sequence, held.id))
    }

    /// Returns true if the ID has not been retired.
    pub fn has(&self, id: &ConnectionId) -> bool {
        self.held().any(|held| held.id == *id)
    }

    /// Returns the ID with a sequence number, unless it has been retired.
    pub fn id_of(&self, sequence: u64) -> Option<&ConnectionId> {
        self.held()
            .find(|held| held.sequence == sequence)
            .map(|held| &held.id)
    }

    /// Makes a reserved ID the current one and retires the previous one. Returns false under the
    /// conditions of [`PeerIds::switch_to_next`].
    pub fn switch_to(&mut self, sequence: u64) -> bool {
        match self
            .others
            .iter()
            .position(|held| held.sequence == sequence)
        {
            Some(index) => self.switch_to_index(index),
            None => false,
        }
    }

    /// Makes a reserved ID the current one, and the current one reserved for the path that is left.
    /// Returns false and changes nothing if the ID has been retired.
    pub fn exchange(&mut self, sequence: u64) -> bool {
        let mut others = self.others.iter_mut();
        let Some(next) = others.find(|held| held.sequence == sequence) else {
            return false;
        };
        (next.is_used, next.is_given_up) = (true, false);
        mem::swap(&mut self.current, next);
        true
    }

    /// Retires a reserved ID that its path no longer uses. While too many of our retirements are
    /// unacknowledged it stays, but is not spare. Other IDs are left alone.
    pub fn give_up(&mut self, sequence: u64) {
        let mut others = self.others.iter_mut();
        if let Some(held) = others.find(|held| held.sequence == sequence && held.is_used) {
            held.is_given_up = true;
        }
        self.retire_given_up();
    }

    fn retire_given_up(&mut self) {
        while self.retirements.has_room_for_own()
            && let Some(index) = self.others.iter().position(|held| held.is_given_up)
        {
            let old = self.others.swap_remove(index);
            self.retirements.add_own(old.sequence);
        }
    }

    fn next_spare(&self) -> Option<usize> {
        (0..self.others.len())
            .filter(|&index| !self.others[index].is_used)
            .min_by_key(|&index| self.others[index].sequence)
    }

    fn switch_to_index(&mut self, index: usize) -> bool {
        if !self.retirements.has_room_for_own() {
            return false;
        }
        let sequence = self.replace_current(index);
        self.retirements.add_own(sequence);
        true
    }

    /// Replaces the current ID and returns the sequence number of the previous one.
    fn replace_current(&mut self, index: usize) -> u64 {
        let mut next = self.others.swap_remove(index);
        (next.is_used, next.is_given_up) = (true, false);
        mem::replace(&mut self.current, next).sequence
    }

    /// Returns true if a retirement waits to be sent to the peer.
    #[inline]
    pub fn has_frames_to_send(&self) -> bool {
        self.retirements.has_frames_to_send()
    }

    /// Writes RETIRE_CONNECTION_ID frames, as many as wait and fit.
    #[inline]
    pub fn write_frames(&mut self, packet: &mut PacketBuilder<'_>) {
        if self.has_frames_to_send() {
            self.retirements.write_frames(packet);
        }
    }

    /// Processes the acknowledgement of a retirement.
    pub fn on_retirement_acked(&mut self, sequence: u64) {
        self.retirements.on_acked(sequence);
        self.retire_given_up();
    }

    /// Sends a lost retirement again.
    pub fn on_retirement_lost(&mut self, sequence: u64) {
        self.retirements.on_lost(sequence);
    }

    /// Returns the number of retirements that the peer has not acknowledged.
    #[cfg(test)]
    pub fn open_retirements(&self) -> usize {
        self.retirements.open.len()
    }

    /// Returns true if `token` resets this connection: it belongs to an ID that we have used and
    /// not retired. IDs without a token match nothing (RFC 9000 §10.3.1).
    ///
    /// The comparison takes the same time for all tokens.
    pub fn is_reset_token(&self, token: &ResetToken) -> bool {
        self.used_tokens()
            .fold(false, |found, used| found | reset_token::equal(used, token))
    }

    /// Returns the next change to the tokens of used IDs, by which the endpoint routes stateless
    /// resets.
    #[inline(always)]
    pub fn poll_token_change(&mut self) -> Option<TokenChange> {
        let is_used = |token: &ResetToken| self.used_tokens().any(|used| used == token);
        if let Some(index) = self
            .reported_tokens
            .iter()
            .position(|token| !is_used(token))
        {
            return Some(TokenChange::Removed(
                self.reported_tokens.swap_remove(index),
            ));
        }
        let added = *self
            .used_tokens()
            .find(|&used| !self.reported_tokens.contains(used))?;
        self.reported_tokens.push(added);
        Some(TokenChange::Added(added))
    }

    /// Removes and returns the tokens of which changes were reported.
    pub fn take_reported_tokens(&mut self) -> Vec<ResetToken> {
        mem::take(&mut self.reported_tokens)
    }

    fn used_tokens(&self) -> impl Iterator<Item = &ResetToken> {
        self.held()
            .filter(|held| held.is_used)
            .filter_map(|held| held.token.as_ref())
    }

    fn held(&self) -> impl Iterator<Item = &Held> {
        std::iter::once(&self.current).chain(&self.others)
    }
}

fn limit_error(reason: String) -> TransportError {
    TransportError::new(TransportErrorCode::CONNECTION_ID_LIMIT_ERROR, reason)
}

/// An ID of the peer that is not retired.
struct Held {
    sequence: u64,
    id: ConnectionId,
    /// The reset token. Only the handshake ID can be without one.
    token: Option<ResetToken>,
    /// True if the ID is in use or reserved.
    is_used: bool,
    /// True if the ID is no longer reserved but not yet retired.
    is_given_up: bool,
}

/// Omits the tokens, as the implementations below do, because they are secrets and stay out of logs.
impl fmt::Debug for PeerIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerIds")
            .field("current", &self.current)
            .field("others", &self.others)
            .field("retire_prior_to", &self.retire_prior_to)
            .field("retirements", &self.retirements)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}{}",
            self.sequence,
            self.id,
            if self.is_used { " used" } else { "" }
        )
    }
}

impl fmt::Debug for TokenChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added(_) => "Added",
            Self::Removed(_) => "Removed",
        })
    }
}

#[cfg(test)]
mod tests;
