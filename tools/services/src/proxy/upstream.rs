//! Connections to the upstream server.

mod admission;
mod content;
mod dial;
mod http2;
mod outage;
mod pool;
mod socket;
mod tcp;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser::server::Cause;
use courser_base::ScopedIp;
use http::{Request, Response, Uri};
use http_body::{Frame, SizeHint};

use self::admission::AdmissionStats;
pub(super) use self::admission::{Admission, Permit};
use self::content::{Http1Content, Http2Content};
pub use self::dial::Dial;
use self::dial::Dialer;
use self::http2::{Http2, StreamLease};
use self::pool::{Lease, Pool};
pub use self::tcp::TcpConnector;
use super::facts::UpstreamFacts;
use super::failure::Failure;
use super::interim::InterimSender;
use crate::body::{Body, BoxError};

/// Limits on the connections to an upstream server and on the requests that wait for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProxyLimits {
    /// Largest number of open connections, including tunnels such as WebSockets (limit K350). An address of
    /// clients uses at most four fifths of them.
    pub connections: usize,
    /// Largest number of requests that wait for a connection (limit K351).
    pub queue: usize,
    /// Longest wait for a connection.
    pub queue_wait: Duration,
    /// Time for which the server may refuse connections, for example while it restarts, before requests fail. At
    /// most half of [`ProxyTimes::response`](super::ProxyTimes::response) is used.
    pub retry: Duration,
    /// Longest time without bytes in either direction of a tunnel.
    pub tunnel_idle: Duration,
}

impl ProxyLimits {
    /// Returns the limits for a process that may open this many file descriptors.
    ///
    /// A third of the descriptors, at most 4096, are for connections to the upstream server. The others are left
    /// for clients and files.
    pub const fn for_descriptors(descriptors: u64) -> Self {
        let third = descriptors / DESCRIPTOR_PART;
        Self {
            connections: match third {
                0 => 1,
                1..MAX_CONNECTIONS => third as usize,
                _ => MAX_CONNECTIONS as usize,
            },
            queue: QUEUE,
            queue_wait: QUEUE_WAIT,
            retry: RETRY,
            tunnel_idle: TUNNEL_IDLE,
        }
    }
}

impl Default for ProxyLimits {
    /// The limits for the 1024 descriptors that many systems allow.
    fn default() -> Self {
        Self::for_descriptors(1024)
    }
}

/// The use of the connections to an upstream server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct UpstreamStats {
    /// Open connections, including idle ones and tunnels.
    pub connections_open: usize,
    /// Largest number of open connections.
    pub connections_limit: usize,
    /// Requests and tunnels in progress.
    pub requests: usize,
    /// Requests that wait for a connection.
    pub waiting: usize,
    /// Largest number of waiting requests.
    pub waiting_limit: usize,
    /// Requests that were refused because too many waited.
    pub refused: u64,
    /// Requests that were refused because they had waited for too long.
    pub timed_out: u64,
    /// Open tunnels.
    pub tunnels: usize,
    /// Tunnels that were closed because they were idle.
    pub tunnels_idle: u64,
}

/// The connections to an upstream server, shared by all requests.
#[derive(Clone, Debug)]
pub(super) struct Upstream<C> {
    admission: Arc<Admission>,
    connections: Connections<C>,
}

#[derive(Clone, Debug)]
enum Connections<C> {
    /// Connections with one request at a time each.
    Http1(Arc<Pool<C>>),
    Http2(Arc<Http2<C>>),
}

impl<C: Dial> Upstream<C> {
    pub(super) fn new(
        connector: C,
        server: Uri,
        is_http2: bool,
        connect_timeout: Duration,
        limits: ProxyLimits,
    ) -> Self {
        let most = limits.connections;
        let wait = limits.queue_wait;
        let admission = Arc::new(Admission::new(most, limits.queue, wait));
        let dialer = Dialer::new(connector, server, connect_timeout, most).retrying(limits.retry);
        let connections = match is_http2 {
            false => Connections::Http1(Arc::new(Pool::new(dialer))),
            true => {
                let pool = Http2::new(dialer, admission.clone(), wait);
                Connections::Http2(Arc::new(pool))
            }
        };
        Self {
            admission,
            connections,
        }
    }

    /// Waits until a request of this client may be sent.
    ///
    /// # Errors
    /// The cause if too many requests wait, or after the longest wait.
    pub(super) async fn admit(&self, client: Option<ScopedIp>) -> Result<Permit, Cause> {
        self.admission.admit(client).await
    }

    /// Sends a request and returns the response, whose content may still be arriving. If the server has closed
    /// the connection or refused the stream before it took the request, the request is sent on another one.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection over HTTP/1.1 and resets the stream over HTTP/2.
    pub(super) async fn send(
        &self,
        request: Request<Body>,
        permit: Permit,
        interim: Option<InterimSender>,
        facts: &mut UpstreamFacts,
    ) -> Result<Response<Content<C>>, Failure> {
        match &self.connections {
            Connections::Http1(pool) => {
                let response = pool.send(request, permit, interim, facts).await?;
                Ok(response.map(Content::Http1))
            }
            // Boxed, because its state is large, and it would enlarge each request over HTTP/1.1.
            Connections::Http2(pool) => {
                let response = Box::pin(pool.send(request, permit, interim, facts)).await?;
                Ok(response.map(Content::Http2))
            }
        }
    }

    pub(super) fn stats(&self) -> UpstreamStats {
        let AdmissionStats {
            admitted,
            waiting,
            queue_capacity,
            refused,
            timed_out,
        } = self.admission.stats();
        let dialer = match &self.connections {
            Connections::Http1(pool) => pool.dialer(),
            Connections::Http2(pool) => pool.dialer(),
        };
        UpstreamStats {
            connections_open: dialer.open().count(),
            connections_limit: dialer.most(),
            requests: admitted,
            waiting,
            waiting_limit: queue_capacity,
            refused,
            timed_out,
            ..UpstreamStats::default()
        }
    }
}

/// The content of a response.
pub(super) enum Content<C: Dial> {
    Http1(Http1Content<Lease<C>>),
    Http2(Http2Content<StreamLease<C>>),
}

impl<C: Dial> Content<C> {
    /// Takes the lease that a tunnel must keep while it uses the connection.
    pub(super) fn into_lease(self) -> Option<Lease<C>> {
        match self {
            Self::Http1(content) => content.into_lease(),
            Self::Http2(_) => None,
        }
    }
}

impl<C: Dial> http_body::Body for Content<C> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            Self::Http1(content) => Pin::new(content).poll_frame(cx),
            Self::Http2(content) => Pin::new(content).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(content) => content.is_end_stream(),
            Self::Http2(content) => content.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(content) => content.size_hint(),
            Self::Http2(content) => content.size_hint(),
        }
    }
}

/// Divisor of the file descriptors that yields the connections to the upstream server (limit K350).
const DESCRIPTOR_PART: u64 = 3;
/// Largest number of connections by default (limit K350).
const MAX_CONNECTIONS: u64 = 4096;
/// Largest number of waiting requests by default (limit K351), as in Envoy.
const QUEUE: usize = 1024;
/// Longest wait by default (limit K351). Clients and load balancers give up after 30 to 60 seconds.
const QUEUE_WAIT: Duration = Duration::from_secs(10);
/// Time for which refused connections are repeated by default (limit K362), as in HAProxy.
const RETRY: Duration = Duration::from_secs(3);
/// Longest silence of a tunnel by default (limit K358). WebSocket libraries send pings each 20 to 60 seconds, but
/// applications need not.
const TUNNEL_IDLE: Duration = Duration::from_secs(3600);
