//! Clients that have no connection yet.

use courser_base::{ScopedIp, Side, Time};
use courser_crypto::{header_protection, initial};
use courser_wire::packet::Packet;
use courser_wire::{ConnectionId, Version, packet_number};

use super::fair_shares::Claimant;
use crate::endpoint::arrived::Arrived;
use crate::path::Place;

/// The properties of a client from its first Initial packet. The address may be forged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Client {
    /// The time at which the packet arrived.
    pub since: Time,
    /// The addresses and the socket of its datagrams.
    pub place: Place,
    /// Destination and Source Connection ID of the packet.
    pub destination: ConnectionId,
    pub source: ConnectionId,
    /// The version of the packet.
    pub version: Version,
}

impl Client {
    /// Returns the client of a first Initial packet.
    pub fn new(arrived: Arrived, packet: &Packet, version: Version) -> Self {
        Self {
            since: arrived.now,
            place: arrived.place(),
            destination: packet.destination,
            source: packet.source,
            version,
        }
    }

    /// Returns the client as a holder of claims.
    pub fn claimant(&self, is_validated: bool) -> Claimant {
        Claimant {
            address: ScopedIp::of(self.place.tuple.peer),
            is_validated,
        }
    }
}

/// Returns true if the first packet of the datagram opens with the Initial keys, so that its
/// sender follows the version's specification. Derives the keys of both sides.
pub fn is_authentic(datagram: &[u8], packet: &Packet) -> bool {
    let mut bytes = datagram[..packet.end].to_vec();
    let keys = initial::initial_keys(packet.version, &packet.destination, Side::Server);
    let offset = packet.packet_number_offset;
    let Some((len, truncated)) =
        header_protection::unprotect(&keys.peer.header, &mut bytes, offset)
    else {
        return false;
    };
    let number = packet_number::expand(truncated, len, 0);
    let (header, payload) = bytes.split_at_mut(offset + len);
    keys.peer.packet.open(number, header, payload).is_ok()
}
