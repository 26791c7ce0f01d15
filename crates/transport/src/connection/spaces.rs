//! Opening and discarding a packet number space, which has state in four parts. RFC 9001 §4.9.

use courser_base::Time;
use courser_crypto::{KeyPair, initial};
use courser_wire::ConnectionId;

use super::parts::{Packets, Parts};
use crate::space::SpaceId;

/// Opens a packet number space with its keys.
pub(super) fn open_space(id: SpaceId, keys: KeyPair, packets: &mut Packets, parts: &mut Parts) {
    packets.protection.install(id, keys);
    packets.recovery.open_space(id);
    parts.acknowledger.open(id);
    parts.handshake.open_space(id);
}

/// Derives the Initial keys from the ID that the client sends to (RFC 9001 §5.2), and opens their
/// space if need be.
pub(super) fn open_initial(destination: &ConnectionId, packets: &mut Packets, parts: &mut Parts) {
    let version = parts.handshake.version().current().value();
    let keys = initial::initial_keys(version, destination, parts.handshake.side());
    open_space(SpaceId::Initial, keys, packets, parts);
}

/// Drops the keys of a space and what is in flight in it (RFC 9001 §4.9, RFC 9002 §6.4).
pub(super) fn discard_space(now: Time, id: SpaceId, packets: &mut Packets, parts: &mut Parts) {
    if !parts.acknowledger.is_open(id) {
        return;
    }
    parts.trace.keys_discarded(now, id);
    packets.recovery.discard_space(id);
    parts.acknowledger.discard(id);
    parts.handshake.discard_space(id);
    packets.protection.discard(id);
}
