//! Connections that wait to be accepted, refused, retried or ignored.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use courser_base::{Ecn, FourTuple, ScopedIp, Side, Time};
use courser_crypto::{TAG_LEN, header_protection, initial};
use courser_wire::frame::{CloseKind, ConnectionClose};
use courser_wire::packet::{LongHeader, MIN_INITIAL_DATAGRAM, Packet, PacketKind, patch_length};
use courser_wire::{ConnectionId, TransportErrorCode, Version, Writer, packet_number};

use super::fair_shares::Claim;
use super::tokens::address_token::AddressProof;
use crate::build::transmit::SocketId;
use crate::endpoint::shrink::shrink;
use crate::hasher::KeyedState;
use crate::path::Place;

/// A client that wants to connect. Return it through [`crate::endpoint::Endpoint::accept`],
/// [`crate::endpoint::Endpoint::refuse`], [`crate::endpoint::Endpoint::retry`] or [`crate::endpoint::Endpoint::ignore`]; until
/// then it counts against [`crate::ServerConfig::max_incoming`].
#[derive(Debug)]
pub struct Incoming {
    pub(in crate::endpoint) id: u64,
    pub(in crate::endpoint) path: FourTuple,
    pub(in crate::endpoint) proof: AddressProof,
    pub(in crate::endpoint) original_destination: ConnectionId,
}

impl Incoming {
    /// Returns the source address of the client, which may be forged.
    pub fn peer(&self) -> SocketAddr {
        self.path.peer
    }

    /// Returns the local address that it connected to, if the platform reports it.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.path.local
    }

    /// Returns true if a token has validated the client's address.
    pub fn is_address_validated(&self) -> bool {
        matches!(
            self.proof,
            AddressProof::Retry(_) | AddressProof::Validation(_)
        )
    }

    /// Returns false if the client has already answered a Retry: it accepts only one (RFC 9000
    /// §17.2.5.2).
    pub fn may_retry(&self) -> bool {
        !matches!(self.proof, AddressProof::Retry(_))
    }

    /// Returns the client's first Destination Connection ID.
    pub fn original_destination(&self) -> &ConnectionId {
        &self.original_destination
    }
}

/// The data kept for an [`Incoming`].
#[derive(Debug)]
pub struct Waiting {
    /// The time at which its first Initial arrived.
    pub since: Time,
    pub path: FourTuple,
    /// The socket at which its datagrams arrived.
    pub socket: SocketId,
    /// Destination and Source Connection ID of the first Initial.
    pub destination: ConnectionId,
    pub source: ConnectionId,
    /// The version of the first Initial.
    pub version: Version,
    pub datagrams: Vec<(Ecn, Vec<u8>)>,
    pub bytes: usize,
    /// True if a token has validated the address.
    pub is_validated: bool,
}

/// Maximum of datagrams kept for one waiting client: a ClientHello of several datagrams, twice.
const MAX_DATAGRAMS: usize = 8;

impl Waiting {
    /// Returns the client in the terms of [`FairShares`](super::fair_shares::FairShares).
    pub fn claim(&self) -> Claim {
        Claim {
            address: ScopedIp::of(self.path.peer),
            is_validated: self.is_validated,
        }
    }

    /// Returns the addresses and the socket of its datagrams.
    pub fn place(&self) -> Place {
        Place {
            tuple: self.path,
            socket: self.socket,
        }
    }

    pub fn has_room(&self) -> bool {
        self.datagrams.len() < MAX_DATAGRAMS
    }
}

/// The waiting clients.
#[derive(Debug)]
pub struct WaitingRoom {
    pub waiting: HashMap<u64, Waiting, KeyedState>,
    pub next_id: u64,
    /// A lower bound on the IDs of waiting clients.
    oldest: u64,
}

impl WaitingRoom {
    pub fn new(key: [u8; 16]) -> Self {
        Self {
            waiting: HashMap::with_hasher(KeyedState::new(key)),
            next_id: 0,
            oldest: 0,
        }
    }

    /// Removes a client.
    pub fn take(&mut self, id: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id);
        shrink(&mut self.waiting);
        waiting
    }

    /// Returns the time that the oldest client has waited.
    pub fn delay(&mut self, now: Time) -> Duration {
        // Each ID is passed once.
        while self.oldest < self.next_id {
            if let Some(oldest) = self.waiting.get(&self.oldest) {
                return now - oldest.since;
            }
            self.oldest += 1;
        }
        Duration::ZERO
    }
}

/// Returns true if the first packet of the datagram opens under the Initial keys, so that its
/// sender follows the version's specification. Costs two key derivations.
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

/// Builds an Initial with CONNECTION_CLOSE from a server that keeps no state for the client (RFC
/// 9000 §5.2.2, §8.1.2).
pub fn stateless_close(
    to: &Waiting,
    source: ConnectionId,
    code: TransportErrorCode,
    reason: &'static str,
) -> Vec<u8> {
    const NUMBER_LEN: usize = 2;
    let keys = initial::initial_keys(to.version.value(), &to.destination, Side::Server);
    let header = LongHeader {
        kind: PacketKind::Initial,
        version: to.version.value(),
        destination: to.source,
        source,
        token: &[],
    };
    let frame = ConnectionClose {
        kind: CloseKind::Transport {
            error_code: code,
            frame_type: 0,
        },
        reason: reason.as_bytes(),
    };
    let number_offset = header.encoded_len();
    let payload_start = number_offset + NUMBER_LEN;
    let mut bytes = vec![0; payload_start + frame.encoded_len() + TAG_LEN];
    debug_assert!(
        bytes.len() < MIN_INITIAL_DATAGRAM,
        "within three times the client's datagram"
    );
    let mut writer = Writer::new(&mut bytes);
    let length_field = header.encode(&mut writer, NUMBER_LEN);
    packet_number::write(&mut writer, 0, NUMBER_LEN);
    frame.encode(&mut writer);
    let length = bytes.len() - number_offset;
    patch_length(&mut bytes, length_field, length);
    keys.local.packet.seal_packet(0, &mut bytes, payload_start);
    header_protection::protect(&keys.local.header, &mut bytes, number_offset, NUMBER_LEN);
    bytes
}

/// The time, path, socket and ECN mark of an arriving datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    pub now: Time,
    pub path: FourTuple,
    pub socket: SocketId,
    pub ecn: Ecn,
    /// It was handed on by another shard.
    pub is_stray: bool,
}
