//! Responses that the server makes itself, without its service.

use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::request::Parts;

use crate::cause::{Cause, CauseCounts};
use crate::peer::Peer;
use crate::requests::{EndedRequest, HttpCounts, HttpVersion, method_index};

/// A response that the server made itself: its service has not received the request, because that is malformed, too
/// large, too slow or for another host, or because memory is short.
///
/// [`Server::on_own_response`](super::Server::on_own_response) reports it, for example to an access log.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OwnResponse<'a> {
    /// The reason.
    pub cause: Cause,
    /// The status. A client whose header section does not arrive in time over HTTP/1.1 is disconnected without a response;
    /// the status is then 408 (Request Timeout).
    pub status: StatusCode,
    /// The address of the client.
    pub client: SocketAddr,
    /// The client and its connection. `None` for clients without TLS.
    pub peer: Option<&'a Peer>,
    /// The header section of the request. `None` if it is malformed or incomplete.
    pub head: Option<&'a Parts>,
    /// The first line of a request without a valid header section, up to its 128th byte. Empty if it is unknown.
    pub first_line: &'a [u8],
}

/// Counts responses of the server by cause, and reports them to the listener.
#[derive(Default)]
pub(crate) struct OwnResponses {
    counts: CauseCounts,
    /// The counters of all requests, if metrics are on.
    requests: Option<Arc<HttpCounts>>,
    listener: OwnListener,
}

/// The listener for the responses that a server makes itself, if there is one.
#[derive(Clone, Default)]
pub(crate) struct OwnListener(Option<Arc<Listener>>);

type Listener = dyn Fn(&OwnResponse<'_>) + Send + Sync;

impl OwnListener {
    pub(crate) fn to(listener: impl Fn(&OwnResponse<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }
}

impl OwnResponses {
    pub(crate) fn new(listener: OwnListener, requests: Option<Arc<HttpCounts>>) -> Self {
        Self {
            counts: CauseCounts::default(),
            requests,
            listener,
        }
    }

    /// Counts a response and calls the listener. If that panics, the calling task continues.
    pub(crate) fn report(&self, response: &OwnResponse<'_>) {
        self.counts.add(response.cause);
        if let Some(requests) = &self.requests {
            let version = response.peer.map(|peer| peer.protocol().into());
            let method = response.head.map(|head| method_index(&head.method));
            requests.record(&EndedRequest {
                version: version.unwrap_or(HttpVersion::Unknown),
                method: method.unwrap_or(usize::MAX),
                status: response.status,
                took: Duration::ZERO,
                bytes: 0,
                is_complete: true,
            });
        }
        if let OwnListener(Some(listener)) = &self.listener {
            let _ = catch_unwind(AssertUnwindSafe(|| listener(response)));
        }
    }

    /// Returns the number of responses by cause.
    pub(crate) fn by_cause(&self) -> Vec<(Cause, u64)> {
        self.counts.occurred()
    }
}

impl fmt::Debug for OwnResponses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnResponses")
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OwnListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnListener")
    }
}

/// Returns the first line in these bytes, without its end, up to [`MAX_FIRST_LINE`].
pub(crate) fn first_line(bytes: &[u8]) -> &[u8] {
    // An empty line may precede a request (RFC 9112 §2.2).
    let bytes = bytes.trim_ascii_start();
    let bytes = &bytes[..bytes.len().min(MAX_FIRST_LINE)];
    let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
    &bytes[..end.unwrap_or(bytes.len())]
}

/// Largest number of bytes of an invalid request that are reported (limit K433).
pub(crate) const MAX_FIRST_LINE: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    /// Limit K433.
    #[test]
    fn first_lines_are_cut_at_their_end_and_at_the_limit() {
        let long = "x".repeat(MAX_FIRST_LINE + 1);
        for (bytes, expected) in [
            ("", ""),
            ("\r\n\r\nGET /\r\nhost: a", "GET /"),
            ("GET /\nhost: a", "GET /"),
            ("no end", "no end"),
            (&*long, &long[1..]),
        ] {
            assert_eq!(
                first_line(bytes.as_bytes()),
                expected.as_bytes(),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn listener_that_panics_ends_nothing_and_the_response_is_counted() {
        let own = OwnResponses::new(OwnListener::to(|_| panic!("in the listener")), None);
        own.report(&OwnResponse {
            cause: Cause::InvalidRequest,
            status: StatusCode::BAD_REQUEST,
            client: ([127, 0, 0, 1], 1).into(),
            peer: None,
            head: None,
            first_line: b"?",
        });
        assert_eq!(own.by_cause(), [(Cause::InvalidRequest, 1)]);
    }
}
