//! Versions of QUIC: the parts of a connection that follow their negotiation. RFC 9368, RFC 9369 §4.

use courser_base::Time;
use courser_crypto::initial;
use courser_wire::packet::Packet;
use courser_wire::{ConnectionId, TransportErrorCode, Version};

use super::parts::{Packets, Parts};
use super::spaces::open_initial;
use super::start::FIRST_DESTINATION_LEN;
use crate::error::TransportError;
use crate::handshake::Handshake;
use crate::protection::PacketProtection;

/// Begins again with a first flight in another version, which the server supports (RFC 9368 §2.1).
pub(super) fn start_again(
    now: Time,
    version: Version,
    packets: &mut Packets,
    parts: &mut Parts,
) -> Result<(), TransportError> {
    let destination: [u8; FIRST_DESTINATION_LEN] = parts.rng.array();
    let destination = ConnectionId::new(&destination).expect("eight bytes are an ID");
    let started = parts.handshake.start_again(version, destination);
    started.map_err(|error| {
        TransportError::new(TransportErrorCode::INTERNAL_ERROR, error.to_string())
    })?;
    parts.trace.version(now, version);
    let old = parts.ids.destination();
    parts.ids.set_handshake_id(destination);
    parts.trace.destination(now, old, destination);
    // Packet numbers go on, everything else of recovery starts anew, as after a Retry.
    packets.recovery.on_retry(now, parts);
    // The keys of early data belong to the TLS session before. It is sent again in 1-RTT packets.
    packets.protection.discard_zero_rtt();
    open_initial(&destination, packets, parts);
    Ok(())
}

/// Prepares the keys for an Initial of the server in another version, if it may move the connection.
pub(super) fn prepare_version(
    packet: &Packet,
    handshake: &Handshake,
    protection: &mut PacketProtection,
) {
    if let Some(version) = handshake.version().other(packet) {
        let (version, side) = (version.value(), handshake.side());
        let destination = handshake.initial_destination();
        protection.prepare_initial(version, || {
            initial::initial_keys(version, &destination, side)
        });
    }
}

/// A client follows the server to the version for which keys were prepared.
pub(super) fn adopt_version(now: Time, protection: &mut PacketProtection, parts: &mut Parts) {
    protection.adopt_initial();
    parts
        .trace
        .version(now, parts.handshake.version().current());
}

/// A server moves the connection from `original` to the version that it has negotiated. It sends
/// CRYPTO frames in that version only.
pub(super) fn move_version(
    now: Time,
    original: Version,
    protection: &mut PacketProtection,
    parts: &mut Parts,
) {
    let version = parts.handshake.version().current();
    let destination = parts.handshake.initial_destination();
    let side = parts.handshake.side();
    let keys = initial::initial_keys(version.value(), &destination, side);
    protection.move_initial(original.value(), keys);
    parts.trace.version(now, version);
}
