//! The plan of a server: everything it serves and reports, independent of the command line. `flags.rs` builds it
//! from the flags.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use courser::server::{Server, ServerHandle};
use courser::telemetry::SinkFactory;
use courser_services::admin::Guard;
use courser_services::webtransport::Echo;
use courser_services::{AddressLists, LogFormat, SessionProxy, Site};

/// A server and the services around it.
pub(super) struct Plan {
    pub(super) site: Site,
    /// The proxy of sessions of WebTransport.
    pub(super) sessions: Option<SessionProxy>,
    /// True if responses of the upstream server are compressed.
    pub(super) compresses_proxied: bool,
    /// The settings of the server, without the sinks and the events that exist only while it runs.
    pub(super) server: Server,
    /// The addresses of plain HTTP.
    pub(super) plain: Vec<SocketAddr>,
    pub(super) protocols: Protocols,
    pub(super) lists: AddressLists,
    /// The traces of QUIC connections.
    pub(super) traces: Option<Arc<dyn SinkFactory>>,
    pub(super) log: Option<LogPlan>,
    pub(super) admin: Option<AdminPlan>,
    /// Warnings of what the server does as it was told, to the disadvantage of clients.
    pub(super) warnings: Vec<String>,
    pub(super) listener: Listener,
    /// True if messages are JSON.
    pub(super) as_json: bool,
    /// Time limit for requests in progress at the end.
    pub(super) drain_timeout: Duration,
}

/// The properties of a server that its announcement and its warnings depend on.
#[derive(Debug)]
pub(crate) struct Protocols {
    pub(crate) domains: Vec<String>,
    pub(crate) has_quic: bool,
    pub(crate) has_tcp: bool,
    /// True for a certificate that clients do not trust by default.
    pub(crate) is_dev: bool,
    pub(crate) has_early_data: bool,
    /// True if clients present certificates.
    pub(crate) asks_for_certificates: bool,
}

/// Prints events, and warns of certificates that were replaced by some that clients refuse or cannot verify.
pub(super) struct Listener {
    /// The files with certificates, which may be replaced while the server runs.
    pub(super) certificate_files: Vec<PathBuf>,
    /// True for a certificate that clients do not trust by default.
    pub(super) is_dev: bool,
    /// The echo of WebTransport sessions.
    pub(super) echo: Option<Echo>,
    /// The server, once it is bound.
    pub(super) handle: Arc<OnceLock<ServerHandle>>,
    /// True if messages are JSON.
    pub(super) as_json: bool,
}

/// The format and the file of the access log.
pub(crate) struct LogPlan {
    pub(crate) format: LogFormat,
    /// The file, or `None` for standard output.
    pub(crate) path: Option<PathBuf>,
}

/// The address of the admin endpoints, and the hosts and tokens that they accept.
pub(crate) struct AdminPlan {
    pub(crate) address: SocketAddr,
    pub(crate) guard: Guard,
}

impl AdminPlan {
    /// Returns true if other machines can reach the endpoints and need no token.
    pub(crate) fn is_exposed(&self) -> bool {
        !self.address.ip().to_canonical().is_loopback() && !self.guard.has_token()
    }
}
