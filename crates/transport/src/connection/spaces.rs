//! Creates and discards packet number spaces, which have state in four parts. RFC 9001 §4.9.

use courser_base::Time;
use courser_crypto::{KeyPair, initial};
use courser_wire::ConnectionId;

use super::Connection;
use crate::space::SpaceId;

impl Connection {
    /// Creates a packet number space with its keys.
    pub(super) fn open_space(&mut self, id: SpaceId, keys: KeyPair) {
        self.packets.protection.install(id, keys);
        self.packets.recovery.open_space(id);
        self.parts.acknowledger.create_space(id);
        self.parts.handshake.open_space(id);
    }

    /// Derives the Initial keys from the destination ID of the client's first packet (RFC 9001 §5.2), and
    /// creates their space if there is none.
    pub(super) fn open_initial(&mut self, destination: &ConnectionId) {
        let handshake = &self.parts.handshake;
        let version = handshake.version().current().value();
        let keys = initial::initial_keys(version, destination, handshake.side());
        self.open_space(SpaceId::Initial, keys);
    }

    /// Discards the keys of a space and its packets in flight (RFC 9001 §4.9, RFC 9002 §6.4).
    pub(super) fn discard_space(&mut self, now: Time, id: SpaceId) {
        if !self.parts.acknowledger.has_space(id) {
            return;
        }
        self.parts.trace.keys_discarded(now, id);
        self.packets.recovery.discard_space(id);
        self.parts.acknowledger.discard(id);
        self.parts.handshake.discard_space(id);
        self.packets.protection.discard(id);
    }
}
