//! Facts of a request and its response, for logs and metrics.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use courser::server::Peer;
use http::{HeaderValue, Method, StatusCode, Uri, Version};

/// A request that is over, and its response.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) peer: Option<Peer>,
    /// The address of the client when it sent the request.
    pub(crate) client: Option<SocketAddr>,
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) version: Version,
    pub(crate) host: Option<HeaderValue>,
    pub(crate) referer: Option<HeaderValue>,
    pub(crate) user_agent: Option<HeaderValue>,
    pub(crate) at: SystemTime,
    pub(crate) status: StatusCode,
    /// Bytes of content sent.
    pub(crate) bytes: u64,
    pub(crate) took: Duration,
    /// False when the response was cut off.
    pub(crate) is_complete: bool,
}
