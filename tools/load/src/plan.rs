//! The settings of a run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use courser::telemetry::SinkFactory;
use courser::{CertificateRequests, QuicVersion};
use courser_measure::Failure;
use courser_measure::tls::{self, Trust, Versions};
use http::Method;

use crate::request::Requests;
use crate::target::Target;

/// The settings of a run.
#[derive(Debug)]
pub struct Plan {
    /// The server under load.
    pub target: Target,
    /// The requests, which are sent in rotation.
    pub requests: Requests,
    /// The version of HTTP and its transport.
    pub protocols: Protocols,
    /// The limit of the run.
    pub amount: Amount,
    /// The number of connections.
    pub connections: u64,
    /// The number of threads, which share the connections; at most one per connection.
    pub threads: u64,
    /// Requests in flight on each connection.
    pub streams: u64,
    /// Requests per second over all connections. Without a rate, each stream sends its next request after the
    /// response to the last one.
    pub rate: Option<f64>,
    /// True if latency counts from the time at which a request was due, so that it includes the delay of
    /// requests that wait while the server does not answer.
    pub is_corrected: bool,
    /// True to send one request per connection and then close the connection.
    pub closes: bool,
    /// The resumption of TLS sessions. Each of the `connections` keeps its own tickets for its successors.
    pub resume: Resume,
    /// Connections opened per second. Without a rate, all are opened at once.
    pub connection_rate: Option<f64>,
    /// Time limit of a request, from sending it to the end of its response.
    pub timeout: Option<Duration>,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
    /// The time after which a connection without packets from the server counts as lost.
    pub inactivity_timeout: Duration,
    /// Flow control window of a stream, in bytes.
    pub stream_window: Option<u32>,
    /// Flow control window of a connection, in bytes.
    pub connection_window: Option<u32>,
    /// Versions of QUIC; the first flight uses the first one.
    pub versions: Vec<QuicVersion>,
    /// Largest UDP payload in bytes; `None` discovers it.
    pub mtu: Option<u16>,
    /// True to send batches of UDP datagrams in one system call, if the system supports it.
    pub segmentation_offload: bool,
    /// The TLS configuration, from [`Protocols::tls_config`].
    pub tls: Arc<rustls::ClientConfig>,
    /// Interval at which each QUIC connection moves to a new socket; `None` keeps the socket.
    pub rebind_every: Option<Duration>,
    /// Receives the traces of QUIC connections.
    pub sinks: Option<Arc<dyn SinkFactory>>,
    /// The file that receives a line for each request, in the format of h2load.
    pub log_file: Option<PathBuf>,
}

/// The resumption of TLS sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Resume {
    /// All handshakes are full handshakes.
    #[default]
    Never,
    /// Connections resume the sessions of earlier ones.
    Sessions,
    /// Connections resume sessions, and send their first request in early data (0-RTT) over HTTP/3.
    EarlyData,
}

impl Resume {
    /// Returns the resumption for the given flags.
    ///
    /// # Errors
    /// Returns an error if there is no TLS, or if early data is requested without HTTP/3 or for requests that
    /// must not be repeated (RFC 8470 §4).
    pub fn of(
        resume: bool,
        early_data: bool,
        protocols: &Protocols,
        method: &Method,
    ) -> Result<Self, Failure> {
        let wrong = match (early_data, resume, protocols) {
            (false, false, _) => return Ok(Self::Never),
            (_, _, Protocols::Clear1 | Protocols::Clear2) => {
                "without TLS there is no session to resume: use an https:// URL"
            }
            (false, true, _) => return Ok(Self::Sessions),
            (true, _, Protocols::Tls(_)) => "early data needs HTTP/3",
            (true, _, Protocols::Quic) if method.is_safe() => return Ok(Self::EarlyData),
            _ => {
                "early data needs a safe method such as GET: an attacker can repeat early requests"
            }
        };
        Err(Failure::new(wrong))
    }
}

/// The limit of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// The run ends after this many requests.
    Requests(u64),
    /// The run ends after a time.
    Time {
        /// The time before the measurement, whose requests do not count.
        warm_up: Duration,
        /// The duration of the measurement.
        measured: Duration,
        /// True if the run waits for the requests that are in flight at its end.
        waits: bool,
    },
}

/// The version of HTTP and its transport.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Protocols {
    /// HTTP/3 over QUIC, without a fallback.
    Quic,
    /// The version that is negotiated over TLS and TCP, out of these names in ALPN.
    Tls(Vec<Vec<u8>>),
    /// HTTP/1.1 over TCP without TLS.
    Clear1,
    /// HTTP/2 over TCP without TLS, by prior knowledge (RFC 9113 §3.3).
    Clear2,
}

impl Protocols {
    /// Creates the TLS configuration of a run.
    ///
    /// # Errors
    /// Returns an error if the trusted certificates cannot be read or used.
    pub fn tls_config(&self, trust: &Trust) -> Result<Arc<rustls::ClientConfig>, Failure> {
        let (versions, offered) = match self {
            Self::Quic => (Versions::Tls13, vec![b"h3".to_vec()]),
            Self::Tls(list) => (Versions::Tls13And12, list.clone()),
            Self::Clear1 | Self::Clear2 => (Versions::Tls13And12, Vec::new()),
        };
        let mut config = tls::client_of(trust, versions, offered)?;
        CertificateRequests::install(&mut config);
        Ok(Arc::new(config))
    }
}
