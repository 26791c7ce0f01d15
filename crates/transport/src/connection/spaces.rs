//! Opening and discarding a packet number space, which has state in four parts. RFC 9001 §4.9.

use courser_base::Time;
use courser_crypto::{KeyPair, initial};
use courser_wire::ConnectionId;

use super::owners::Owners;
use crate::protection::PacketProtection;
use crate::recovery::LossRecovery;
use crate::space::SpaceId;

/// Opens a packet number space with its keys.
pub(super) fn open_space(
    id: SpaceId,
    keys: KeyPair,
    recovery: &mut LossRecovery,
    protection: &mut PacketProtection,
    owners: &mut Owners<'_>,
) {
    protection.install(id, keys);
    recovery.open_space(id);
    owners.acknowledger.open(id);
    owners.handshake.open_space(id);
}

/// Derives the Initial keys from the ID that the client sends to (RFC 9001 §5.2), and opens their
/// space if need be.
pub(super) fn open_initial(
    destination: &ConnectionId,
    recovery: &mut LossRecovery,
    protection: &mut PacketProtection,
    owners: &mut Owners<'_>,
) {
    let version = owners.handshake.version().current().value();
    let keys = initial::initial_keys(version, destination, owners.handshake.side());
    open_space(SpaceId::Initial, keys, recovery, protection, owners);
}

/// Drops the keys of a space and what is in flight in it (RFC 9001 §4.9, RFC 9002 §6.4).
pub(super) fn discard_space(
    now: Time,
    id: SpaceId,
    recovery: &mut LossRecovery,
    protection: &mut PacketProtection,
    owners: &mut Owners<'_>,
) {
    if !owners.acknowledger.is_open(id) {
        return;
    }
    owners.trace.keys_discarded(now, id);
    recovery.discard_space(id);
    owners.acknowledger.discard(id);
    owners.handshake.discard_space(id);
    protection.discard(id);
}
