//! Applies a negotiated version to the parts of a connection. RFC 9368, RFC 9369 §4.

use courser_base::Time;
use courser_crypto::initial;
use courser_wire::packet::Packet;
use courser_wire::{ConnectionId, TransportErrorCode, Version};

use super::Connection;
use super::start::FIRST_DESTINATION_LEN;
use crate::error::TransportError;

impl Connection {
    /// Restarts the connection with a first flight in another version, which the server supports (RFC 9368
    /// §2.1).
    pub(super) fn restart(&mut self, now: Time, version: Version) -> Result<(), TransportError> {
        let parts = &mut self.parts;
        let destination: [u8; FIRST_DESTINATION_LEN] = parts.rng.array();
        let destination = ConnectionId::new(&destination).expect("eight bytes are an ID");
        let started = parts.handshake.restart(version, destination);
        started.map_err(|error| {
            TransportError::new(TransportErrorCode::INTERNAL_ERROR, error.to_string())
        })?;
        parts.trace.version(now, version);
        parts.set_handshake_id(now, destination);
        // Packet numbers continue, and the rest of recovery is reset, as after a Retry.
        self.packets.recovery.on_retry(now, parts);
        // The keys of early data belong to the previous TLS session. The data is sent again in 1-RTT packets.
        self.packets.protection.discard_zero_rtt();
        self.open_initial(&destination);
        Ok(())
    }

    /// Prepares the keys for an Initial of the server in another version, if it may move the connection.
    #[inline]
    pub(super) fn prepare_version(&mut self, packet: &Packet) {
        let handshake = &self.parts.handshake;
        if let Some(version) = handshake.version().other(packet) {
            let (version, side) = (version.value(), handshake.side());
            let destination = handshake.initial_destination();
            self.packets.protection.prepare_initial(version, || {
                initial::initial_keys(version, &destination, side)
            });
        }
    }

    /// Follows the server to the version for which keys were prepared.
    pub(super) fn adopt_version(&mut self, now: Time) {
        self.packets.protection.adopt_initial();
        let version = self.parts.handshake.version().current();
        self.parts.trace.version(now, version);
    }

    /// Moves the connection of a server from `original` to the version that it has negotiated. It sends
    /// CRYPTO frames in that version only.
    pub(super) fn move_version(&mut self, now: Time, original: Version) {
        let handshake = &self.parts.handshake;
        let version = handshake.version().current();
        let destination = handshake.initial_destination();
        let keys = initial::initial_keys(version.value(), &destination, handshake.side());
        self.packets.protection.move_initial(original.value(), keys);
        self.parts.trace.version(now, version);
    }
}
