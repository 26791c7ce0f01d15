//! The observations of a run, without verdicts.

use std::net::SocketAddr;

use serde::Serialize;

use crate::webtransport::WebTransport;

/// The observations of one run. Parts that were not reached are `None`.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Facts {
    /// The host as the user wrote it.
    pub host: String,
    /// The address that was examined.
    pub address: SocketAddr,
    /// The number of handshakes, including TLS over TCP.
    pub handshakes: u32,
    /// The first connection, or the reason why it failed.
    pub first: Result<FirstConnection, String>,
    /// The versions offered in response to a datagram of an unknown version; `None` without a response.
    pub versions: Option<Vec<u32>>,
    /// The version after a handshake that offers version 2 and starts with version 1.
    pub version2: Option<Result<u32, String>>,
    /// The second connection, which resumes the session of the first one.
    pub resumed: Option<Result<ResumedConnection, String>>,
    /// A connection whose first flight is one datagram of 1200 bytes.
    pub small: Option<Result<SmallFirstFlight, String>>,
    /// The outcome of a handshake that offers only an unknown protocol.
    pub unknown_alpn: Option<Refusal>,
    /// The `alt-svc` field of a response over TCP; the inner `None` if it has none.
    pub tcp: Option<Result<Option<String>, String>>,
    /// The protocols that HTTPS records offer; `None` if no records were looked up.
    pub https_record: Option<Result<Vec<String>, String>>,
    /// The place that the server announces for HTTP/3, if it is not the port of the user.
    pub announced: Option<Announced>,
}

/// A place that the server announces for HTTP/3.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct Announced {
    /// The host, empty for that of the server, and the port.
    pub place: String,
    /// The outcome of a handshake with it.
    pub outcome: AnnouncedOutcome,
}

/// The outcome of a handshake with an announced port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnnouncedOutcome {
    /// The port of the user did not answer, so that this one was examined.
    Examined,
    /// The server answers.
    Answers,
    /// The handshake failed for this reason.
    Failed(String),
    /// It is another host, which the user has not named.
    NotContacted,
}

/// The first connection: its handshake and its exchanges.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
#[non_exhaustive]
pub struct FirstConnection {
    /// Duration of the handshake in milliseconds.
    pub handshake_ms: f64,
    /// The round-trip time in milliseconds.
    pub rtt_ms: f64,
    /// The QUIC version of the connection.
    pub version: u32,
    /// The application protocol that was negotiated, such as `h3`.
    pub protocol: String,
    /// The key exchange group, such as `X25519MLKEM768`.
    pub group: String,
    /// The cipher suite by its AEAD, such as `Aes128Gcm`.
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
    /// Datagrams of the server with ECN marks, and without them.
    pub marks: [u64; 2],
    /// Packets with a short header, and those among them with a Fixed Bit of 0.
    pub greased: [u64; 2],
    /// Changes of the spin bit by the server, and by this client.
    pub spins: [u64; 2],
    /// The UDP payload that the path carries in bytes, and whether the search for it is complete.
    pub mtu: (u16, bool),
    /// Spare connection IDs, and tokens for later connections.
    pub spare: [u64; 2],
    /// Requests and their responses.
    pub exchange: Option<Result<Exchange, String>>,
    /// The announcement of WebTransport; `None` without HTTP/3.
    pub webtransport: Option<WebTransport>,
    /// The change of the client's port.
    pub rebinding: Option<AddressChange>,
    /// The address of this client as the server reports it.
    pub observed_address: Option<SocketAddr>,
}

/// The certificate chain of the server.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
#[non_exhaustive]
pub struct Chain {
    /// The reason why the chain is not trusted; `None` if it is.
    pub distrust: Option<String>,
    /// Bytes of the chain in DER.
    pub bytes: usize,
    /// Number of certificates in the chain.
    pub certificates: usize,
    /// Number of certificates from the beginning that are in order.
    pub in_order: usize,
    /// Days until the first certificate expires.
    pub days_left: i64,
    /// The type of the public key, such as `ECDSA`.
    pub key: String,
    /// The first few names in the certificate.
    pub names: Vec<String>,
    /// The algorithm with which the chain was compressed (RFC 8879); `None` if it was not.
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
    pub has_several_paths: bool,
    pub reports_addresses: bool,
    pub takes_candidates: bool,
}

/// Requests and responses on the first connection.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
#[non_exhaustive]
pub struct Exchange {
    /// False if the server does not answer HEAD correctly, so that requests use GET.
    pub head: bool,
    /// The status code; `None` over HTTP/0.9.
    pub status: Option<u16>,
    /// The value of the field `server`, if the response has it.
    pub server: Option<String>,
    /// The value of the field `alt-svc`, if the response has it.
    pub alt_svc: Option<String>,
    /// Bytes of the header sections of two equal responses.
    pub header_bytes: Option<[u64; 2]>,
    /// The HTTP/3 settings of the server.
    pub settings: Option<Settings>,
    /// Length of the content in bytes.
    pub content: u64,
    /// The order of two concurrent responses with different priorities.
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
    /// No concurrent requests were sent.
    #[default]
    NotTried,
    /// The content is too short or too long to decide.
    TooShort,
    /// The urgent response completed before the one that was requested first.
    Honoured,
    /// The urgent response did not complete first.
    Ignored,
}

/// The outcome of a handshake that the server must refuse.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The server accepted the handshake.
    Accepted,
    /// The server closed the connection with this error code.
    Code(u64),
    /// The connection ended in another way.
    Other(String),
}

/// A change of the client's port, by a NAT or by migration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Default)]
#[non_exhaustive]
pub struct AddressChange {
    /// True if a request was answered after the change.
    pub survived: bool,
    /// True if the server validated the new path with a PATH_CHALLENGE.
    pub validated: bool,
}

/// The second connection, which tries to resume the session.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
#[non_exhaustive]
pub struct ResumedConnection {
    /// True if the session was resumed.
    pub resumed: bool,
    /// The fate of early data: `none`, `accepted` or `rejected`.
    pub early_data: String,
    /// The status code of a request in early data, if it was answered.
    pub early_status: Option<u16>,
    /// Duration of the handshake in milliseconds.
    pub handshake_ms: f64,
    /// True if the server sent a Retry although it had issued a token.
    pub retry: bool,
    /// True if the connection survived a key update; `None` if none was tried.
    pub key_update: Option<bool>,
    /// A migration to another port with a fresh connection ID. `None` if the server forbids it or issued no
    /// spare ID.
    pub migration: Option<AddressChange>,
}

/// A connection with a small first flight.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
#[non_exhaustive]
pub struct SmallFirstFlight {
    /// The key exchange group.
    pub group: String,
    /// Bytes sent and received before the server had validated the address.
    pub early_bytes: [u64; 2],
    /// True if the server sent more than three times what it had received.
    pub exceeds_three_times: bool,
    /// Duration of the handshake in milliseconds.
    pub handshake_ms: f64,
}
