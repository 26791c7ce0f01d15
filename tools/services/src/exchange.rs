//! The facts about a request and its response that logs and metrics record.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use courser::server::{Cause, OwnResponse, Peer, Protocol};
use http::{HeaderValue, Method, Request, StatusCode, Uri, Version, header};

use crate::proxy::UpstreamFacts;
use crate::request_id::RequestId;

/// A completed request and its response.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) method: Method,
    pub(crate) status: StatusCode,
    /// Number of content bytes sent.
    pub(crate) bytes: u64,
    pub(crate) took: Duration,
    /// False if the response was aborted.
    pub(crate) is_complete: bool,
    /// The reason if the server made the response itself, or if the response was aborted.
    pub(crate) cause: Option<Cause>,
    /// What happened at the upstream server of a proxy.
    pub(crate) upstream: UpstreamFacts,
}

/// The facts about a request that only the access log records.
#[derive(Clone, Debug)]
pub(crate) struct Details {
    pub(crate) peer: Option<Peer>,
    /// The client address at the time of the request.
    pub(crate) client: Option<SocketAddr>,
    pub(crate) uri: Uri,
    pub(crate) version: Version,
    pub(crate) host: Option<HeaderValue>,
    pub(crate) referer: Option<HeaderValue>,
    pub(crate) user_agent: Option<HeaderValue>,
    pub(crate) at: SystemTime,
    /// The ID of the request, in formats that include it.
    pub(crate) request_id: Option<RequestId>,
    /// The first line of a request without a valid header section, possibly empty.
    pub(crate) first_line: Option<Box<[u8]>>,
}

impl Exchange {
    /// Returns the record of a request that the server answered itself, without content.
    pub(crate) fn of_own(response: &OwnResponse<'_>) -> Self {
        let head = response.head;
        Self {
            method: head.map(|head| head.method.clone()).unwrap_or_default(),
            status: response.status,
            bytes: 0,
            took: Duration::ZERO,
            is_complete: true,
            cause: Some(response.cause),
            upstream: UpstreamFacts::default(),
        }
    }
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
            request_id: None,
            first_line: None,
        }
    }

    /// Copies the details of a request that the server answered itself.
    pub(crate) fn of_own(response: &OwnResponse<'_>) -> Self {
        let head = response.head;
        let field = |name| head?.headers.get(name).cloned();
        let version = match (head, response.peer.map(Peer::protocol)) {
            (Some(head), _) => head.version,
            (None, Some(Protocol::Http2)) => Version::HTTP_2,
            (None, Some(Protocol::Http3)) => Version::HTTP_3,
            (None, _) => Version::HTTP_11,
        };
        Self {
            peer: response.peer.cloned(),
            client: Some(response.client),
            uri: head.map(|head| head.uri.clone()).unwrap_or_default(),
            version,
            host: field(header::HOST),
            referer: field(header::REFERER),
            user_agent: field(header::USER_AGENT),
            at: SystemTime::now(),
            request_id: None,
            first_line: head.is_none().then(|| response.first_line.into()),
        }
    }
}
