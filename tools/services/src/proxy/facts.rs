//! Facts about the exchange with the upstream server, for logs.

use std::net::SocketAddr;
use std::time::Duration;

use http::StatusCode;

/// The exchange of one request with the upstream server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct UpstreamFacts {
    /// The address of the connection.
    pub(crate) address: Option<SocketAddr>,
    /// Time that it took to establish the connection, or zero for a connection that existed before.
    pub(crate) connecting: Option<Duration>,
    /// Time from the request until the header section of the response, including the time to connect.
    pub(crate) responding: Option<Duration>,
    /// The status of the response of the upstream server, even if it was not forwarded.
    pub(crate) status: Option<StatusCode>,
}
