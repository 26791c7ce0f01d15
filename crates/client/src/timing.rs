//! The duration of each step of a request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_quic::{Connection, ConnectionStats, HandshakeData, PathInfo};
use courser_tls::rustls;

use super::race::Transport;

/// The timing of a request. It is in the [extensions](http::Response::extensions) of each response, and in
/// errors.
///
/// All times are measured from [`began`](Timing::began). Steps that were skipped, such as the handshakes of a
/// reused connection, are `None`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Timing {
    /// The time at which the client received the request or followed a redirect.
    pub began: Instant,
    /// Time at which the first address was known.
    pub name_lookup: Option<Duration>,
    /// Time at which TCP was connected.
    pub tcp_connect: Option<Duration>,
    /// Time at which the TLS handshake over TCP was complete.
    pub tls_handshake: Option<Duration>,
    /// Time at which the QUIC handshake, which includes TLS, was complete. `None` if the connection sent early
    /// data before that.
    pub quic_handshake: Option<Duration>,
    /// Time at which the request was passed to its connection.
    pub request_started: Option<Duration>,
    /// Time at which the header section of the response had arrived.
    pub first_byte: Option<Duration>,
    /// Time at which the response body was complete; only in [`Body::timing`](super::Body::timing).
    pub total: Option<Duration>,
    /// The HTTP version of the connection.
    pub protocol: Option<http::Version>,
    /// The remote address: that of the server or of the proxy.
    pub remote: Option<SocketAddr>,
    /// The local address. A QUIC connection has the port of the client's socket.
    pub local: Option<SocketAddr>,
    /// True if the connection existed before the request.
    pub is_reused: bool,
    /// True if TLS resumed an earlier session.
    pub is_resumed: bool,
    /// The fate of the early data (0-RTT) that carried the request, if any; see
    /// [`ClientBuilder::early_data`](super::ClientBuilder::early_data).
    pub early_data: Option<EarlyRequest>,
    /// The parameters negotiated in the TLS handshake of the connection. `None` without TLS, and until the end
    /// of the handshake if the connection sends early data.
    pub tls: Option<Arc<TlsSummary>>,
    /// True if the request was sent through a proxy.
    pub is_proxied: bool,
    /// Connection attempts for this request in the order of their starts. At most one of them has won.
    pub attempts: Vec<Attempt>,
    /// Number of times that the request was repeated because it had not been processed.
    pub retries: u32,
    /// Number of times that the request was repeated by the [`RetryPolicy`](super::RetryPolicy), after a delay. The
    /// other values are those of the last repetition.
    pub repeats: u32,
    /// The counters of the QUIC connection at the time of the response.
    pub quic: Option<ConnectionStats>,
    /// The paths of the QUIC connection at the time of the response, if it may have several (RFC 10069).
    pub paths: Vec<PathInfo>,
}

/// The fate of a request that was sent in early data (0-RTT).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EarlyRequest {
    /// The server accepted the early data.
    Accepted,
    /// The server rejected the early data of the connection, and the request was repeated on another one.
    Rejected,
    /// The server responded with `425 Too Early`, and the request was repeated after the handshake.
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

/// The parameters negotiated in a TLS handshake.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TlsSummary {
    /// The cipher suite, such as `TLS_AES_128_GCM_SHA256`.
    pub cipher_suite: Option<String>,
    /// The key exchange group, such as `X25519MLKEM768`.
    pub key_exchange: Option<String>,
    /// True if the server accepted an encrypted ClientHello (ECH, RFC 9849).
    pub encrypted_hello: bool,
    /// The algorithm with which the server compressed its certificate (RFC 8879), such as `zlib`. QUIC only.
    pub certificate_compression: Option<&'static str>,
    /// The OCSP response that the server stapled to its certificate (RFC 6066 §8), DER-encoded and not verified.
    /// QUIC only.
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
                // rustls includes the version of TLS in its names.
                format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1)
            }),
            key_exchange: group.map(|group| format!("{:?}", group.name())),
            encrypted_hello: session.ech_status() == rustls::client::EchStatus::Accepted,
            ..Self::default()
        }
    }
}

/// An attempt to connect to one address.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// Whether the attempt used QUIC or TCP.
    pub transport: Transport,
    /// The address of the server or the proxy.
    pub address: SocketAddr,
    /// Time of the start, measured from [`Timing::began`].
    pub began: Duration,
    /// Time of the end, measured from [`Timing::began`]; `None` if it was still in progress.
    pub ended: Option<Duration>,
    /// The result of the attempt.
    pub outcome: Outcome,
}

/// The result of a connection attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Another attempt was faster, or this one was still in progress.
    Overtaken,
    /// The attempt was the first to connect.
    Won,
    /// The attempt failed for this reason.
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
            repeats: 0,
            quic: None,
            paths: Vec::new(),
        }
    }

    /// Takes the counters of the QUIC connection.
    pub(super) fn set_quic(&mut self, quic: &Connection) {
        self.quic = Some(quic.stats());
        self.paths = quic.paths();
    }

    /// Creates the timing of a request that a policy has repeated.
    pub(super) fn repeated(began: Instant, repeats: u32) -> Self {
        Self {
            began,
            repeats,
            ..Self::new()
        }
    }

    /// Creates the timing of a request that is repeated.
    pub(super) fn of_retry(began: Instant, retries: u32) -> Self {
        Self {
            began,
            retries,
            ..Self::new()
        }
    }

    /// Returns the time since [`began`](Self::began).
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Converts an instant to a time since [`began`](Self::began).
    pub(super) fn at(&self, time: Instant) -> Duration {
        time.saturating_duration_since(self.began)
    }

    /// Returns the number of connections opened for this request: 0 if one was reused.
    pub fn connects(&self) -> usize {
        usize::from(!self.is_reused && self.first_byte.is_some())
    }
}
