//! Transport parameters, which each end sends during the handshake. RFC 9000 §7.4, §18.

mod check;
mod codec;
mod id;
mod version_information;

use std::fmt;
use std::net::{SocketAddrV4, SocketAddrV6};
use std::num::NonZeroU8;

use crate::connection_id::ConnectionId;
use crate::path_id::PathId;

pub use version_information::VersionInformation;

/// The transport parameters of one end. RFC 9000 §18.2.
///
/// The default value applies to an end that sends no parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransportParameters {
    /// The Destination Connection ID of the client's first Initial packet; server only.
    pub original_destination_connection_id: Option<ConnectionId>,
    /// The idle timeout in milliseconds; 0 for none.
    pub max_idle_timeout: u64,
    /// The stateless reset token of the connection ID used in the handshake; server only.
    pub stateless_reset_token: Option<[u8; 16]>,
    /// The largest UDP payload that this end accepts, in bytes.
    pub max_udp_payload_size: u64,
    /// The initial limit on the data of all streams together, in bytes.
    pub initial_max_data: u64,
    /// The initial limit on the data of each bidirectional stream that this end opens, in bytes.
    pub initial_max_stream_data_bidi_local: u64,
    /// The initial limit on the data of each bidirectional stream that the other end opens, in
    /// bytes.
    pub initial_max_stream_data_bidi_remote: u64,
    /// The initial limit on the data of each unidirectional stream that the other end opens, in
    /// bytes.
    pub initial_max_stream_data_uni: u64,
    /// The number of bidirectional streams that the other end may open initially; at most 2^60.
    pub initial_max_streams_bidi: u64,
    /// The number of unidirectional streams that the other end may open initially; at most 2^60.
    pub initial_max_streams_uni: u64,
    /// The exponent of the delay in ACK frames, which is in units of 2 to this power microseconds;
    /// at most 20.
    pub ack_delay_exponent: u64,
    /// The largest delay of this end's ACK frames in milliseconds; below 2^14.
    pub max_ack_delay: u64,
    /// True if the other end must not migrate to another address while it uses the address of the
    /// handshake.
    pub disable_active_migration: bool,
    /// The address that the server prefers for the connection; server only.
    pub preferred_address: Option<PreferredAddress>,
    /// The number of connection IDs that this end is willing to store; at least 2.
    pub active_connection_id_limit: u64,
    /// The Source Connection ID of this end's first Initial packet.
    pub initial_source_connection_id: Option<ConnectionId>,
    /// The Source Connection ID of the Retry packet, if there was one; server only.
    pub retry_source_connection_id: Option<ConnectionId>,
    /// The smallest delay of this end's ACK frames in microseconds, at most `max_ack_delay`. If
    /// present, this end supports ACK_FREQUENCY and IMMEDIATE_ACK frames.
    /// draft-ietf-quic-ack-frequency-12 §3.
    pub min_ack_delay: Option<u64>,
    /// The largest DATAGRAM frame that this end accepts, in bytes including type and length; 0 if
    /// it accepts none. RFC 9221 §3.
    pub max_datagram_frame_size: u64,
    /// True if this end accepts RESET_STREAM_AT frames. draft-ietf-quic-reliable-stream-reset-10 §3.
    pub reset_stream_at: bool,
    /// The version that this end chose and those that it supports. RFC 9368 §3.
    pub version_information: Option<VersionInformation>,
    /// True if this end accepts packets whose Fixed Bit is 0. RFC 9287 §3.
    pub grease_quic_bit: bool,
    /// The largest path ID that the other end may use initially. If present, this end supports several
    /// paths. RFC 10069 §2.1.
    pub initial_max_path_id: Option<PathId>,
    /// The use that this end makes of observed addresses, if any. draft-ietf-quic-address-discovery-00 §3.
    pub address_discovery: Option<AddressDiscovery>,
    /// The number of candidate addresses that this end accepts. If present, this end supports the traversal of NATs.
    /// draft-seemann-quic-nat-traversal-02 §3, in the variant of the field.
    pub max_candidates: Option<NonZeroU8>,
}

/// The use that an end makes of observed addresses. draft-ietf-quic-address-discovery-00 §3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressDiscovery {
    /// It reports the addresses of its peer.
    Provides,
    /// It asks for its own addresses.
    Receives,
    /// It does both.
    Both,
}

impl AddressDiscovery {
    /// Returns true if the end reports the addresses of its peer.
    pub const fn provides(self) -> bool {
        matches!(self, Self::Provides | Self::Both)
    }

    /// Returns true if the end asks for its own addresses.
    pub const fn receives(self) -> bool {
        matches!(self, Self::Receives | Self::Both)
    }

    const fn to_wire(self) -> u64 {
        self as u64
    }

    const fn from_wire(value: u64) -> Option<Self> {
        match value {
            0 => Some(Self::Provides),
            1 => Some(Self::Receives),
            2 => Some(Self::Both),
            _ => None,
        }
    }
}

/// An additional address of the server and the connection ID for its use. RFC 9000 §9.6, §18.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PreferredAddress {
    /// The IPv4 address, if one is offered.
    pub ipv4: Option<SocketAddrV4>,
    /// The IPv6 address, if one is offered.
    pub ipv6: Option<SocketAddrV6>,
    /// The connection ID with sequence number 1; never empty.
    pub id: ConnectionId,
    /// The stateless reset token of the connection ID.
    pub reset_token: [u8; 16],
}

impl Default for TransportParameters {
    fn default() -> Self {
        Self {
            original_destination_connection_id: None,
            max_idle_timeout: 0,
            stateless_reset_token: None,
            max_udp_payload_size: DEFAULT_MAX_UDP_PAYLOAD_SIZE,
            initial_max_data: 0,
            initial_max_stream_data_bidi_local: 0,
            initial_max_stream_data_bidi_remote: 0,
            initial_max_stream_data_uni: 0,
            initial_max_streams_bidi: 0,
            initial_max_streams_uni: 0,
            ack_delay_exponent: DEFAULT_ACK_DELAY_EXPONENT,
            max_ack_delay: DEFAULT_MAX_ACK_DELAY_MS,
            disable_active_migration: false,
            preferred_address: None,
            active_connection_id_limit: MIN_ACTIVE_CONNECTION_ID_LIMIT,
            initial_source_connection_id: None,
            retry_source_connection_id: None,
            min_ack_delay: None,
            max_datagram_frame_size: 0,
            reset_stream_at: false,
            version_information: None,
            grease_quic_bit: false,
            initial_max_path_id: None,
            address_discovery: None,
            max_candidates: None,
        }
    }
}

/// The error of refused transport parameters: TRANSPORT_PARAMETER_ERROR. RFC 9000 §7.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParameterError {
    /// The ID of the parameter; all ones if the ID itself cannot be decoded.
    pub parameter: u64,
    /// The rule that the parameter violates.
    pub reason: &'static str,
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match id::name(self.parameter) {
            Some(name) => write!(f, "{name} {}", self.reason),
            None => write!(
                f,
                "transport parameter {:#x} {}",
                self.parameter, self.reason
            ),
        }
    }
}

impl std::error::Error for ParameterError {}

const DEFAULT_MAX_UDP_PAYLOAD_SIZE: u64 = 65527;
const DEFAULT_ACK_DELAY_EXPONENT: u64 = 3;
const DEFAULT_MAX_ACK_DELAY_MS: u64 = 25;
/// Both the default and the smallest permitted value.
const MIN_ACTIVE_CONNECTION_ID_LIMIT: u64 = 2;

#[cfg(test)]
mod tests;
