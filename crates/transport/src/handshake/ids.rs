//! The connection IDs of a handshake, which transport parameters confirm. RFC 9000 §7.2, §7.3.

use courser_base::Side;
use courser_crypto::retry_integrity;
use courser_wire::packet::{MIN_INITIAL_DATAGRAM, Packet, PacketKind};
use courser_wire::transport_parameters::TransportParameters;
use courser_wire::{ConnectionId, TransportErrorCode};

use crate::error::TransportError;

/// The connection IDs that the packets of a handshake carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandshakeIds {
    side: Side,
    /// The client's first destination ID.
    original: ConnectionId,
    /// Our source ID.
    local: ConnectionId,
    /// The peer's source ID, from its first packet.
    peer: Option<ConnectionId>,
    /// Source ID of the Retry, if there was one.
    retry: Option<ConnectionId>,
}

impl HandshakeIds {
    /// Creates the IDs of a client that sends its first Initial from `local` to `original`.
    pub(crate) fn of_client(local: ConnectionId, original: ConnectionId) -> Self {
        Self {
            side: Side::Client,
            original,
            local,
            peer: None,
            retry: None,
        }
    }

    /// Creates the IDs of a server whose client has the source ID `peer`.
    pub(crate) fn of_server(
        local: ConnectionId,
        original: ConnectionId,
        peer: ConnectionId,
        retry: Option<ConnectionId>,
    ) -> Self {
        Self {
            side: Side::Server,
            original,
            local,
            peer: Some(peer),
            retry,
        }
    }

    /// Returns the ID from which Initial keys are derived (RFC 9001 §5.2).
    pub(super) fn initial_destination(&self) -> ConnectionId {
        self.retry.unwrap_or(self.original)
    }

    /// Starts again with a first Initial to `destination`.
    pub(super) fn restart(&mut self, destination: ConnectionId) {
        self.original = destination;
    }

    /// Our source ID.
    pub(crate) fn local(&self) -> ConnectionId {
        self.local
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }

    /// Checks the rules about long headers that can be checked without keys (RFC 9000 §7.2, §14.1, §17.2.2).
    /// `datagram_len` is the length of the whole datagram.
    pub(super) fn accepts(&self, packet: &Packet, datagram_len: usize) -> bool {
        if packet.kind == PacketKind::OneRtt {
            return true;
        }
        if packet.kind == PacketKind::Initial {
            let too_small = self.side.is_server() && datagram_len < MIN_INITIAL_DATAGRAM;
            let has_token = self.side.is_client() && !packet.token.is_empty();
            if too_small || has_token {
                return false;
            }
        }
        self.peer.is_none_or(|source| source == packet.source)
    }

    /// Stores the source ID of the server's first packet, to which later packets are sent (RFC 9000 §7.2).
    /// Returns it when it is new.
    pub(super) fn on_first_packet(&mut self, packet: &Packet) -> Option<ConnectionId> {
        if self.peer.is_some() || packet.kind != PacketKind::Initial {
            return None;
        }
        self.peer = Some(packet.source);
        self.peer
    }

    /// Returns true if a Version Negotiation packet to this client, sent from `source`, is acceptable:
    /// only as the first response to its Initial (RFC 9000 §6.2).
    pub(super) fn is_unanswered_by(&self, source: &[u8]) -> bool {
        self.is_unanswered() && source == &self.original[..]
    }

    /// Stores the source ID of a Retry (RFC 9000 §17.2.5.2). Returns false if the packet has to be discarded.
    pub(super) fn on_retry(&mut self, packet: &Packet, bytes: &[u8]) -> bool {
        let is_acceptable = self.is_unanswered()
            && (1..=MAX_RETRY_TOKEN).contains(&packet.token.len())
            && packet.source != self.original
            && retry_integrity::is_valid(&self.original, bytes);
        if is_acceptable {
            self.retry = Some(packet.source);
        }
        is_acceptable
    }

    /// Returns true for a client that has received neither a packet of the server nor a Retry.
    pub(super) fn is_unanswered(&self) -> bool {
        self.side.is_client() && self.peer.is_none() && self.retry.is_none()
    }

    /// Compares the peer's transport parameters with the IDs of its packets (RFC 9000 §7.3).
    ///
    /// # Errors
    ///
    /// TRANSPORT_PARAMETER_ERROR for the first that differs.
    pub(super) fn check(&self, peer: &TransportParameters) -> Result<(), TransportError> {
        if peer.initial_source_connection_id.is_none()
            || peer.initial_source_connection_id != self.peer
        {
            return Err(mismatch("initial_source_connection_id"));
        }
        if self.side.is_server() {
            return Ok(());
        }
        if peer.original_destination_connection_id != Some(self.original) {
            return Err(mismatch("original_destination_connection_id"));
        }
        if peer.retry_source_connection_id != self.retry {
            return Err(mismatch("retry_source_connection_id"));
        }
        Ok(())
    }
}

/// Returns the error for transport parameters that break a rule.
pub(super) fn parameter_error(reason: String) -> TransportError {
    TransportError::new(TransportErrorCode::TRANSPORT_PARAMETER_ERROR, reason)
}

fn mismatch(name: &str) -> TransportError {
    parameter_error(format!("{name} is not what the packets say"))
}

/// A client discards a Retry with a longer token (limit K95). Such a token would leave no space for
/// CRYPTO data in its Initials, and an attacker who saw the first Initial can forge the Retry.
const MAX_RETRY_TOKEN: usize = 1024;
