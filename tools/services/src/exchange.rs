//! Facts of a request and its response, for logs and metrics.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use courser::server::{Peer, Protocol};
use http::{HeaderValue, Method, Request, StatusCode, Uri, Version, header};

/// A request that is over, and its response.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The protocol of the client's connection.
    pub(crate) protocol: Option<Protocol>,
    pub(crate) method: Method,
    pub(crate) status: StatusCode,
    /// Bytes of content sent.
    pub(crate) bytes: u64,
    pub(crate) took: Duration,
    /// False if the response was cut off.
    pub(crate) is_complete: bool,
}

/// The parts of a request that only a log needs.
#[derive(Debug)]
pub(crate) struct Details {
    pub(crate) peer: Option<Peer>,
    /// The address of the client when it sent the request.
    pub(crate) client: Option<SocketAddr>,
    pub(crate) uri: Uri,
    pub(crate) version: Version,
    pub(crate) host: Option<HeaderValue>,
    pub(crate) referer: Option<HeaderValue>,
    pub(crate) user_agent: Option<HeaderValue>,
    pub(crate) at: SystemTime,
}

impl Details {
    /// Copies the details of a request that has just arrived.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let headers = request.headers();
        let peer = request.extensions().get::<Peer>();
        Self {
            peer: peer.cloned(),
            client: peer.map(Peer::current_address),
            uri: request.uri().clone(),
            version: request.version(),
            host: headers.get(header::HOST).cloned(),
            referer: headers.get(header::REFERER).cloned(),
            user_agent: headers.get(header::USER_AGENT).cloned(),
            at: SystemTime::now(),
        }
    }
}
