//! Sessions of WebTransport through the proxy, to an upstream server over HTTP/3.

mod backend;
mod counts;
mod dial;
mod failure;
mod relay;
mod stream;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use courser::ClientConfig;
use courser::server::{self, Cause, Peer};
use courser::webtransport::{
    self, ConnectError, IncomingSession, Monitor, Session, SessionRequest,
};
use courser_base::ScopedIp;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, Uri, Version};
use tokio::time::{Instant, timeout};

pub use self::backend::SessionBackend;
use self::counts::Counts;
pub use self::counts::SessionProxyStats;
use self::dial::{Connected, SessionDialer};
use self::relay::Relay;
use super::facts::UpstreamFacts;
use super::failure::Failure;
use super::forward::{self, Outgoing};
use super::framing::FilteredTrailers;
use super::report::Reporter;
use super::timeouts::IdleTimeout;
use super::upstream::{Admission, Permit};
use super::{ProxyTimes, hops, refusal, target};
use crate::body::{Body, boxed};

/// Forwards sessions of WebTransport to an upstream server over HTTP/3.
///
/// The client's request goes to the upstream server first: with its host, path, origin and application protocols, and with the
/// fields that a [`Proxy`](super::Proxy) adds. The client then gets the answer: the status of a refusal, or a session whose
/// streams, datagrams, codes, requests to end soon and reason of the end are those of the upstream session. Each hop
/// has a dialect and flow control of its own.
///
/// Each session has a connection of its own to the upstream server, as a WebSocket has. A client that does not read
/// occupies no windows of others, and servers that serve one session on a connection are served too.
#[derive(Clone)]
pub struct SessionProxy(Arc<Inner>);

struct Inner {
    dialer: SessionDialer,
    admission: Arc<Admission>,
    times: ProxyTimes,
    keeps_underscores: bool,
    relays: Arc<Counts>,
    reporter: Option<Arc<Reporter>>,
}

impl SessionProxy {
    /// Creates a proxy. `client` has the servers that are trusted, and `limit` is the largest number of sessions at the
    /// same time, of which clients of one address get at most four fifths (limit K666).
    ///
    /// # Errors
    /// A message for the user if the configuration cannot be used.
    pub fn new(
        backend: SessionBackend,
        client: ClientConfig,
        times: ProxyTimes,
        limit: usize,
    ) -> Result<Self, String> {
        Ok(Self(Arc::new(Inner {
            dialer: SessionDialer::new(backend, client, limit)?,
            admission: Arc::new(Admission::new(limit, SESSION_QUEUE, Duration::ZERO)),
            times,
            keeps_underscores: false,
            relays: Arc::default(),
            reporter: None,
        })))
    }

    /// Calls `report` with a message for the operator when sessions fail because of the upstream server, like
    /// [`Proxy::on_failure`](super::Proxy::on_failure).
    ///
    /// # Panics
    /// Panics if the proxy was cloned before.
    #[must_use]
    pub fn on_failure(mut self, report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let inner = Arc::get_mut(&mut self.0).expect("the proxy was cloned before");
        inner.reporter = Some(Reporter::new(inner.dialer.backend().to_string(), report));
        self
    }

    /// Forwards request fields whose names contain an underscore, like
    /// [`Proxy::with_underscores`](super::Proxy::with_underscores).
    ///
    /// # Panics
    /// Panics if the proxy was cloned before.
    #[must_use]
    pub fn with_underscores(mut self, keeps_underscores: bool) -> Self {
        let inner = Arc::get_mut(&mut self.0).expect("the proxy was cloned before");
        inner.keeps_underscores = keeps_underscores;
        self
    }

    /// Returns the upstream server.
    pub fn backend(&self) -> &SessionBackend {
        self.0.dialer.backend()
    }

    /// Returns the counts of the connections to the upstream server.
    pub fn monitor(&self) -> &Monitor {
        self.0.dialer.monitor()
    }

    /// Returns the use of the proxy.
    pub fn stats(&self) -> SessionProxyStats {
        let open = self.0.admission.stats().admitted;
        self.0.relays.stats(open)
    }

    /// Answers a request for a session.
    pub(crate) async fn answer(
        &self,
        mut request: Request<server::Body>,
        facts: &mut UpstreamFacts,
    ) -> Response<Body> {
        let upgrade = webtransport::upgrade(&mut request);
        let (parts, _) = request.into_parts();
        let incoming = match upgrade.check::<()>().await {
            Ok(incoming) => incoming,
            Err(response) => return response.map(|()| Body::empty()),
        };
        match self.forward(incoming, parts, facts).await {
            Ok(response) => response,
            Err(failure) => {
                self.0.relays.on_failed();
                if let Some(reporter) = &self.0.reporter {
                    let error = failure.error.as_deref();
                    reporter.on_failure(failure.cause, error, facts.address);
                }
                refusal(&failure)
            }
        }
    }

    async fn forward(
        &self,
        mut incoming: IncomingSession,
        mut parts: Parts,
        facts: &mut UpstreamFacts,
    ) -> Result<Response<Body>, Failure> {
        let inner = &*self.0;
        let client = parts.extensions.get::<Peer>().map(Peer::current_address);
        let request = inner.request(&incoming, &mut parts)?;
        let permit = inner.admission.admit(client.map(ScopedIp::of)).await;
        let permit = permit.map_err(|_| Failure::from(Cause::UpstreamBusy))?;
        let began = Instant::now();
        let connected = inner.dialer.connect(inner.times.connect, facts).await?;
        let opening = webtransport::request_session(&connected.http3, request);
        let opened = timeout(inner.times.response, opening).await;
        facts.responding = Some(began.elapsed());
        let response = match opened.map_err(|_| Failure::from(Cause::UpstreamTimeout))? {
            Ok(response) => response,
            Err(ConnectError::Refused(response)) => {
                facts.status = Some(response.status());
                inner.relays.on_refused();
                return inner.refuse(incoming, *response, parts.version);
            }
            Err(error) => return Err(failure::of_session(error)),
        };
        facts.status = Some(response.status());
        forward::check_response(response.status(), response.headers())?;
        let (mut head, upstream) = response.into_parts();
        if let Some(protocol) = upstream.protocol() {
            // It is one of those that the client offers, because the request had the same.
            let chosen = incoming.choose(protocol);
            chosen.map_err(|error| Failure::new(Cause::UpstreamInvalidResponse, error))?;
        }
        forward::prepare_response(&mut head, parts.version);
        remove_fields_of_a_hop(&mut head.headers);
        incoming.response_headers_mut().extend(head.headers);
        Ok(self.open(incoming, upstream, (permit, connected)))
    }

    fn open(
        &self,
        incoming: IncomingSession,
        upstream: Session,
        kept: (Permit, Connected),
    ) -> Response<Body> {
        let counts = self.0.relays.clone();
        let response = incoming.accept::<(), _, _>(move |client| async move {
            Relay::new(client, upstream, counts).run().await;
            drop(kept);
        });
        response.map(|()| Body::empty())
    }
}

impl Inner {
    /// Returns the request for the upstream server.
    fn request(
        &self,
        incoming: &IncomingSession,
        parts: &mut Parts,
    ) -> Result<SessionRequest, Failure> {
        if !forward::has_valid_names(&parts.headers) {
            return Err(Failure::new(Cause::InvalidField, "invalid field name"));
        }
        hops::check(parts)?;
        let host = target::host(parts);
        let host = host.map_err(|reason| Failure::new(Cause::InvalidHost, reason))?;
        let outgoing = Outgoing {
            host: host.as_ref(),
            host_field: None,
            upgrade: None,
            keeps_underscores: self.keeps_underscores,
        };
        parts.version = Version::HTTP_3;
        forward::prepare_request(parts, outgoing);
        let mut headers = std::mem::take(&mut parts.headers);
        remove_fields_of_a_hop(&mut headers);
        let uri: Uri = parts.uri.clone();
        let request = SessionRequest::new(uri).headers(headers);
        Ok(request.protocols(incoming.protocols().clone()))
    }

    /// Passes the answer of an upstream server on that has refused the session.
    fn refuse<B>(
        &self,
        incoming: IncomingSession,
        response: Response<B>,
        version: Version,
    ) -> Result<Response<Body>, Failure>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + Unpin + 'static,
        B::Error: Into<crate::body::BoxError>,
    {
        forward::check_response(response.status(), response.headers())?;
        let (mut parts, body) = response.into_parts();
        if parts.status == StatusCode::SWITCHING_PROTOCOLS || parts.status.is_informational() {
            return Err(Cause::UpstreamInvalidResponse.into());
        }
        forward::prepare_response(&mut parts, version);
        remove_fields_of_a_hop(&mut parts.headers);
        let refused: Response<()> = incoming.refuse(parts.status);
        debug_assert_eq!(refused.status(), parts.status);
        let content = FilteredTrailers::new(body, true);
        let content = IdleTimeout::new(content, self.times.body, self.reporter.clone());
        Ok(Response::from_parts(parts, boxed(content)))
    }
}

impl fmt::Debug for SessionProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionProxy")
            .field("backend", self.backend())
            .finish_non_exhaustive()
    }
}

/// Removes the fields that the two ends of one connection agree with. Each hop writes its own.
fn remove_fields_of_a_hop(headers: &mut HeaderMap) {
    for name in FIELDS_OF_A_HOP {
        headers.remove(name);
    }
}

/// Sessions that wait for a place (limit K666). They are long, so that waiting would lead to nothing.
const SESSION_QUEUE: usize = 0;

const FIELDS_OF_A_HOP: [HeaderName; 5] = [
    HeaderName::from_static("wt-available-protocols"),
    HeaderName::from_static("wt-protocol"),
    HeaderName::from_static("sec-webtransport-http3-draft02"),
    HeaderName::from_static("sec-webtransport-http3-draft"),
    // It describes the connection to the upstream server (draft-ietf-webtrans-http3-16 §4.1).
    HeaderName::from_static("ratelimit-policy"),
];

#[cfg(test)]
mod tests;
