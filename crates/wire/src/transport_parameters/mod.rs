//! Transport parameters: what each end tells the other during the handshake. RFC 9000 §7.4, §18.

mod check;
mod codec;
mod id;

use std::fmt;
use std::net::{SocketAddrV4, SocketAddrV6};

use crate::connection_id::ConnectionId;

/// The transport parameters of one end. RFC 9000 §18.2.
///
/// The default value is what holds for an end that says nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransportParameters {
    /// Destination Connection ID of the client's first Initial; server only.
    pub original_destination_connection_id: Option<ConnectionId>,
    /// Milliseconds of silence that end the connection; 0 for never.
    pub max_idle_timeout: u64,
    /// Reset token of the connection ID used in the handshake; server only.
    pub stateless_reset_token: Option<[u8; 16]>,
    /// The largest UDP payload that this end is willing to receive, in bytes.
    pub max_udp_payload_size: u64,
    /// Initial limit on the data of all streams together.
    pub initial_max_data: u64,
    /// Initial limit on the data of bidirectional streams that this end opens.
    pub initial_max_stream_data_bidi_local: u64,
    /// Initial limit on the data of bidirectional streams that the other end opens.
    pub initial_max_stream_data_bidi_remote: u64,
    /// Initial limit on the data of unidirectional streams that the other end opens.
    pub initial_max_stream_data_uni: u64,
    /// How many bidirectional streams the other end may open at first; at most 2^60.
    pub initial_max_streams_bidi: u64,
    /// How many unidirectional streams the other end may open at first; at most 2^60.
    pub initial_max_streams_uni: u64,
    /// The delay in ACK frames is in units of 2 to this power, in microseconds; at most 20.
    pub ack_delay_exponent: u64,
    /// Milliseconds by which this end delays an ACK at most; below 2^14.
    pub max_ack_delay: u64,
    /// The other end must not move to a new address while it talks to the handshake's address.
    pub disable_active_migration: bool,
    /// Where the server would rather be talked to; server only.
    pub preferred_address: Option<PreferredAddress>,
    /// How many connection IDs this end is willing to keep; at least 2.
    pub active_connection_id_limit: u64,
    /// Source Connection ID of this end's first Initial.
    pub initial_source_connection_id: Option<ConnectionId>,
    /// Source Connection ID of the Retry, if there was one; server only.
    pub retry_source_connection_id: Option<ConnectionId>,
    /// Microseconds by which this end can delay an ACK at least; it takes ACK_FREQUENCY and
    /// IMMEDIATE_ACK frames if it says so. At most `max_ack_delay`.
    /// draft-ietf-quic-ack-frequency-12 §3.
    pub min_ack_delay: Option<u64>,
    /// The largest DATAGRAM frame that this end takes, in bytes with type and length; 0 for none at
    /// all. RFC 9221 §3.
    pub max_datagram_frame_size: u64,
}

/// Another address of the server, with a connection ID to use there. RFC 9000 §9.6, §18.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PreferredAddress {
    /// The IPv4 address, if there is one.
    pub ipv4: Option<SocketAddrV4>,
    /// The IPv6 address, if there is one.
    pub ipv6: Option<SocketAddrV6>,
    /// The connection ID with sequence number 1; never empty.
    pub id: ConnectionId,
    /// Its stateless reset token.
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
        }
    }
}

/// Transport parameters that are refused: TRANSPORT_PARAMETER_ERROR. RFC 9000 §7.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParameterError {
    /// The parameter's number on the wire; all ones when not even that could be read.
    pub parameter: u64,
    /// The rule that it breaks.
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
/// Both the default and the least that is allowed.
const MIN_ACTIVE_CONNECTION_ID_LIMIT: u64 = 2;

#[cfg(test)]
mod tests;
