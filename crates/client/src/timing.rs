//! The timing of a request, step by step.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_quic::{ConnectionStats, HandshakeData};
use courser_tls::rustls;

use super::race::Transport;

/// The timing of a request. It is among the [extensions](http::Response::extensions) of each
/// response, and in errors.
///
/// All times count from [`began`](Timing::began). Steps that were skipped, such as the handshakes
/// of a reused connection, are `None`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Timing {
    /// The time at which the client received the request or, after a redirect, followed it.
    pub began: Instant,
    /// Time of the first known address.
    pub name_lookup: Option<Duration>,
    /// Time at which TCP was connected.
    pub tcp_connect: Option<Duration>,
    /// Time at which the TLS handshake over TCP was complete.
    pub tls_handshake: Option<Duration>,
    /// Time at which the QUIC handshake, which includes TLS, was complete. `None` if the connection
    /// was used for early data before.
    pub quic_handshake: Option<Duration>,
    /// Time at which the request was passed to a connection.
    pub request_started: Option<Duration>,
    /// Time at which the header section of the response had arrived.
    pub first_byte: Option<Duration>,
    /// Time at which the body of the response was complete; only in
    /// [`Body::timing`](super::Body::timing).
    pub total: Option<Duration>,
    /// The HTTP version of the connection.
    pub protocol: Option<http::Version>,
    /// The remote address: that of the server, or of the proxy.
    pub remote: Option<SocketAddr>,
    /// The local address. The port of a QUIC connection is that of the client's socket.
    pub local: Option<SocketAddr>,
    /// True if the connection existed before.
    pub is_reused: bool,
    /// True if TLS resumed an earlier session.
    pub is_resumed: bool,
    /// The fate of the early data (0-RTT) that the request was sent in, if it was; see
    /// [`ClientBuilder::early_data`](super::ClientBuilder::early_data).
    pub early_data: Option<EarlyRequest>,
    /// The parameters that the TLS handshake of the connection negotiated. `None` without TLS, and before
    /// the end of the handshake of a connection in early data.
    pub tls: Option<Arc<TlsSummary>>,
    /// True if the request went through a proxy.
    pub is_proxied: bool,
    /// Connection attempts for this request, in order. At most one of them has won.
    pub attempts: Vec<Attempt>,
    /// Number of times that the request was sent again because it had not been processed.
    pub retries: u32,
    /// The counters of the QUIC connection at this moment.
    pub quic: Option<ConnectionStats>,
}

/// The fate of a request that left in early data (0-RTT).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EarlyRequest {
    /// The server has answered it.
    Accepted,
    /// The server has refused the early data of the connection, and the request was sent again on
    /// another one.
    Rejected,
    /// The server has answered with `425 Too Early`, and the request was sent again once the handshake
    /// was complete.
    TooEarly,
}

impl std::fmt::Display for EarlyRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::TooEarly => "too early",
        })
    }
}

/// The parameters that a TLS handshake negotiated.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TlsSummary {
    /// The cipher suite, such as `TLS_AES_128_GCM_SHA256`.
    pub cipher_suite: Option<String>,
    /// The key exchange group, such as `X25519MLKEM768`.
    pub key_exchange: Option<String>,
    /// True if the server has accepted an encrypted ClientHello (ECH, RFC 9849).
    pub encrypted_hello: bool,
    /// Over QUIC, the algorithm with which the server has compressed its certificate (RFC 8879), such as
    /// `zlib`.
    pub certificate_compression: Option<&'static str>,
    /// Over QUIC, the OCSP response that the server has stapled to its certificate (RFC 6066 §8), in DER and
    /// not verified.
    pub ocsp_response: Option<Vec<u8>>,
}

impl TlsSummary {
    pub(super) fn of_quic(handshake: HandshakeData) -> Self {
        Self {
            cipher_suite: handshake.suite.map(|suite| suite.to_string()),
            key_exchange: handshake.key_exchange,
            encrypted_hello: handshake.encrypted_hello,
            certificate_compression: handshake.certificate_compression,
            ocsp_response: handshake.ocsp_response,
        }
    }

    pub(super) fn of_tcp(session: &rustls::ClientConnection) -> Self {
        let suite = session.negotiated_cipher_suite();
        let group = session.negotiated_key_exchange_group();
        Self {
            cipher_suite: suite.map(|suite| {
                // rustls distinguishes the versions of TLS in its names.
                format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1)
            }),
            key_exchange: group.map(|group| format!("{:?}", group.name())),
            encrypted_hello: session.ech_status() == rustls::client::EchStatus::Accepted,
            ..Self::default()
        }
    }
}

/// A connection attempt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// The transport of the attempt.
    pub transport: Transport,
    /// The address of the attempt.
    pub address: SocketAddr,
    /// Time of the start, counted from [`Timing::began`].
    pub began: Duration,
    /// Time of the outcome.
    pub ended: Option<Duration>,
    /// The outcome of the attempt.
    pub outcome: Outcome,
}

/// The outcome of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Another attempt was faster, or this one is still in progress.
    Overtaken,
    /// The connection carried the request.
    Won,
    /// The attempt failed, for this reason.
    Failed(String),
}

impl Timing {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            name_lookup: None,
            tcp_connect: None,
            tls_handshake: None,
            quic_handshake: None,
            request_started: None,
            first_byte: None,
            total: None,
            protocol: None,
            remote: None,
            local: None,
            is_reused: false,
            is_resumed: false,
            early_data: None,
            tls: None,
            is_proxied: false,
            attempts: Vec::new(),
            retries: 0,
            quic: None,
        }
    }

    /// Creates the timing of a request that is sent again.
    pub(super) fn of_retry(began: Instant, retries: u32) -> Self {
        Self {
            began,
            retries,
            ..Self::new()
        }
    }

    /// Returns the time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns an instant relative to the start.
    pub(super) fn at(&self, time: Instant) -> Duration {
        time.saturating_duration_since(self.began)
    }

    /// Returns the number of connections made for this request: 0 if one was reused.
    pub fn connects(&self) -> usize {
        usize::from(!self.is_reused && self.first_byte.is_some())
    }
}
