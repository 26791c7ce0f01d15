//! Everything that was observed, without a judgement.

use std::net::SocketAddr;

use serde::Serialize;

/// The observations of one run. A part that was not reached is `None`.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Facts {
    /// The host as it was named.
    pub host: String,
    /// The address that was examined.
    pub address: SocketAddr,
    /// Handshakes that were made, TLS over TCP included.
    pub handshakes: u32,
    /// The first handshake, or the reason why there was none.
    pub first: Result<First, String>,
    /// The answer to a datagram of an unknown version: the offered versions, `None` for silence.
    pub versions: Option<Vec<u32>>,
    /// The version after a handshake that offers version 2 and begins in version 1.
    pub version2: Option<Result<u32, String>>,
    /// The second handshake, which resumes the session of the first.
    pub resumed: Option<Result<Resumed, String>>,
    /// A handshake whose first flight is one datagram of 1200 bytes.
    pub small: Option<Result<Small, String>>,
    /// The outcome of a handshake for a protocol that no server has.
    pub unknown_alpn: Option<Refusal>,
    /// The `alt-svc` field over TCP: the field if there is one.
    pub tcp: Option<Result<Option<String>, String>>,
    /// HTTPS records: true if one offers HTTP/3. `None` if none were looked up.
    pub https_record: Option<Result<Vec<String>, String>>,
}

/// The first handshake, and the exchanges on its connection.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
#[non_exhaustive]
pub struct First {
    /// Duration of the handshake in milliseconds.
    pub handshake_ms: f64,
    /// The round-trip time in milliseconds.
    pub rtt_ms: f64,
    /// The version of QUIC.
    pub version: u32,
    /// The application protocol.
    pub protocol: String,
    /// The key exchange group.
    pub group: String,
    /// The cipher suite.
    pub suite: String,
    /// True if the server sent a Retry packet to validate the address.
    pub retry: bool,
    /// Bytes sent and received before the server had validated the address.
    pub early_bytes: [u64; 2],
    /// True if the server sent more than three times what it had received.
    pub exceeds_three_times: bool,
    /// The certificate chain; `None` for a raw public key.
    pub chain: Option<Chain>,
    /// The transport parameters of the server.
    pub parameters: Option<Parameters>,
    /// The state of ECN validation: `Capable`, `Failed`, ...
    pub ecn: Option<String>,
    /// Datagrams of the server with marks, without marks.
    pub marks: [u64; 2],
    /// Packets with a short header, and those with a Fixed Bit of 0.
    pub greased: [u64; 2],
    /// Changes of the spin bit of the server and of this client.
    pub spins: [u64; 2],
    /// The UDP payload that the path carries, in bytes, and whether the search for it was complete.
    pub mtu: (u16, bool),
    /// Spare connection IDs and tokens for later connections.
    pub spare: [u64; 2],
    /// The exchange of messages.
    pub exchange: Option<Result<Exchange, String>>,
    /// The change of the client's port.
    pub rebinding: Option<Move>,
}

/// A certificate chain.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
#[non_exhaustive]
pub struct Chain {
    /// The reason why the chain is not trusted.
    pub distrust: Option<String>,
    /// Bytes of the chain in DER.
    pub bytes: usize,
    /// Number of certificates.
    pub certificates: usize,
    /// Certificates at the beginning that are in order.
    pub in_order: usize,
    /// Days until the first certificate expires.
    pub days_left: i64,
    /// The kind of key.
    pub key: String,
    /// The first names in the certificate.
    pub names: Vec<String>,
    /// The algorithm with which the chain was compressed.
    pub compression: Option<String>,
}

/// Transport parameters (RFC 9000 §18.2).
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
#[expect(
    missing_docs,
    reason = "the names of RFC 9000 §18.2 and of the extensions"
)]
#[non_exhaustive]
pub struct Parameters {
    pub max_idle_timeout_ms: u64,
    pub max_udp_payload_size: u64,
    pub initial_max_data: u64,
    pub initial_max_stream_data_bidi_remote: u64,
    pub initial_max_streams_bidi: u64,
    pub initial_max_streams_uni: u64,
    pub ack_delay_exponent: u64,
    pub max_ack_delay_ms: u64,
    pub disable_active_migration: bool,
    pub has_preferred_address: bool,
    pub active_connection_id_limit: u64,
    pub max_datagram_frame_size: u64,
    pub has_min_ack_delay: bool,
    pub reset_stream_at: bool,
    pub grease_quic_bit: bool,
    pub has_version_information: bool,
    pub has_stateless_reset_token: bool,
}

/// Requests and responses on the first connection.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
#[non_exhaustive]
pub struct Exchange {
    /// False if the server does not answer HEAD as it should, so that requests are GET.
    pub head: bool,
    /// The status over HTTP/3.
    pub status: Option<u16>,
    /// The field `server`.
    pub server: Option<String>,
    /// The field `alt-svc`.
    pub alt_svc: Option<String>,
    /// Bytes of the header sections of two equal responses.
    pub header_bytes: Option<[u64; 2]>,
    /// The settings of HTTP/3.
    pub settings: Option<Settings>,
    /// Length of the content in bytes.
    pub content: u64,
    /// The fate of two requests at the same time.
    pub priorities: Priorities,
}

/// Settings of HTTP/3 (RFC 9114 §7.2.4.1, RFC 9204 §5, RFC 9220, RFC 9297).
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
#[expect(missing_docs, reason = "the names of the settings")]
#[non_exhaustive]
pub struct Settings {
    pub qpack_max_table_capacity: u64,
    pub qpack_blocked_streams: u64,
    pub max_field_section_size: Option<u64>,
    pub enable_connect_protocol: bool,
    pub h3_datagram: bool,
}

/// The effect of priorities (RFC 9218).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Priorities {
    /// There were no two requests at the same time.
    #[default]
    NotTried,
    /// The content is too short to decide.
    TooShort,
    /// The urgent response overtook the one that was requested first.
    Honoured,
    /// The urgent response did not overtake it.
    Ignored,
}

/// The outcome of a handshake that the server has to refuse.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The server has accepted it.
    Accepted,
    /// The server has closed the connection with this error code.
    Code(u64),
    /// The connection ended in another way.
    Other(String),
}

/// A change of the client's address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Default)]
#[non_exhaustive]
pub struct Move {
    /// True if a request was answered afterwards.
    pub survived: bool,
    /// True if the server validated the new path with a PATH_CHALLENGE.
    pub validated: bool,
}

/// The second handshake.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
#[non_exhaustive]
pub struct Resumed {
    /// True if the session was resumed.
    pub resumed: bool,
    /// The state of early data: `none`, `accepted`, `rejected`.
    pub early_data: String,
    /// The status of a request in early data.
    pub early_status: Option<u16>,
    /// Duration of the handshake in milliseconds.
    pub handshake_ms: f64,
    /// True if the server validated the address by a Retry although it had given out a token.
    pub retry: bool,
    /// True if the connection survived an update of its keys.
    pub key_update: Option<bool>,
    /// The change to another port with a fresh connection ID. `None` if the server forbids it or has given
    /// out no spare ID.
    pub migration: Option<Move>,
}

/// A handshake with a small first flight.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
#[non_exhaustive]
pub struct Small {
    /// The key exchange group.
    pub group: String,
    /// Bytes sent and received before the server had validated the address.
    pub early_bytes: [u64; 2],
    /// True if the server sent more than three times what it had received.
    pub exceeds_three_times: bool,
    /// Duration of the handshake in milliseconds.
    pub handshake_ms: f64,
}
