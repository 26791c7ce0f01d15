//! Requests and responses between the protocols and the user's service.

pub(crate) mod body;
pub(crate) mod early_data;
pub(crate) mod misdirected;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use courser_http3_tokio::hooks::{self, Admission};
use courser_http3_tokio::{self as h3, HttpService};
use http::header::{ALT_SVC, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;

use self::body::Body;
use self::early_data::TooEarly;
use self::misdirected::Names;
use crate::alt_svc::AltSvcHeader;
use crate::http2::budgets::Refusing;
use crate::http2::held::{HeldContent, Paced};
use crate::limits::Limits;
use crate::limits::pace::BodyRate;
use crate::limits::request_memory::cost;
use crate::tally::{InFlight, Open};

/// The settings of a connection, which all its requests share.
#[derive(Debug)]
pub(super) struct Terms {
    open: Arc<Open>,
    alt_svc: Option<AltSvcHeader>,
    /// True if requests get an `Interim` that sends nothing. Those of HTTP/3 have a working one.
    tells_of_interim: bool,
    body_rate: Option<BodyRate>,
    handler_timeout: Option<Duration>,
    /// The policy for requests in early data.
    early_requests: Option<TooEarly>,
    /// The only names whose requests the service receives.
    names: Option<Names>,
}

impl Terms {
    pub(super) fn new(open: Arc<Open>, limits: &Limits) -> Self {
        Self {
            open,
            alt_svc: None,
            tells_of_interim: false,
            body_rate: limits.body_rate,
            handler_timeout: limits.handler_timeout,
            early_requests: None,
            names: None,
        }
    }

    /// Restricts the service to requests for these names.
    pub(super) fn only(self, names: Option<Names>) -> Self {
        Self { names, ..self }
    }

    /// Adds the policy for requests in early data, which only HTTP/3 has.
    pub(super) fn over_quic(self, early_requests: Option<TooEarly>) -> Self {
        Self {
            early_requests,
            ..self
        }
    }

    /// Adds what only requests of HTTP/2 and HTTP/1.1 need.
    pub(super) fn over_tcp(self, alt_svc: Option<AltSvcHeader>, tells_of_interim: bool) -> Self {
        Self {
            alt_svc,
            tells_of_interim,
            ..self
        }
    }

    fn is_misdirected<B>(&self, request: &Request<B>) -> bool {
        let misdirected = self.names.as_ref().is_some_and(|it| it.refuse(request));
        if misdirected {
            let count = &self.open.tally.requests_misdirected;
            count.fetch_add(1, Relaxed);
        }
        misdirected
    }

    /// Counts a request as in flight until the guard is dropped. Returns it as the service receives it, or
    /// the status that refuses it.
    fn admit_any<B: Into<Body>>(
        &self,
        request: Request<B>,
    ) -> (InFlight, Result<Request<Body>, StatusCode>) {
        let in_flight = self.open.begin_request(cost(&request));
        let refusal = match self.refusal(&request) {
            None if in_flight.is_refused() => Some(StatusCode::SERVICE_UNAVAILABLE),
            refusal => refusal,
        };
        let admitted = match refusal {
            Some(status) => Err(status),
            None => Ok(self.prepare(request)),
        };
        (in_flight, admitted)
    }

    /// Returns the status for a request that the service must not receive.
    fn refusal<B>(&self, request: &Request<B>) -> Option<StatusCode> {
        if self.is_misdirected(request) {
            return Some(StatusCode::MISDIRECTED_REQUEST);
        }
        let policy = self.early_requests.as_ref()?;
        if !early_data::is_early(request) {
            return None;
        }
        let tally = &self.open.tally;
        if policy.refuses(request) {
            tally.requests_too_early.fetch_add(1, Relaxed);
            return Some(StatusCode::TOO_EARLY);
        }
        tally.early_requests.fetch_add(1, Relaxed);
        None
    }

    fn prepare<B: Into<Body>>(&self, request: Request<B>) -> Request<Body> {
        let rate = self.body_rate.filter(|_| !may_pause(&request));
        let mut request = request.map(|body| body.into().with_rate(rate));
        let extensions = request.extensions_mut();
        extensions.insert(self.open.record.peer.clone());
        if self.tells_of_interim {
            extensions.insert(hooks::unsupported_interim());
        }
        request
    }
}

/// HTTP/3 has its requests admitted, and answers them itself.
impl Admission for Terms {
    type Body = Body;
    type InFlight = InFlight;

    fn admit(&self, request: Request<h3::Body>) -> (InFlight, Result<Request<Body>, StatusCode>) {
        self.admit_any(request)
    }

    fn time_limit(&self) -> Option<Duration> {
        self.handler_timeout
    }
}

/// The service for HTTP/2 and HTTP/1.1: that of the user, which receives the admitted requests.
#[derive(Debug)]
pub(super) struct Exchange<S> {
    service: S,
    // Each request clones the rest.
    terms: Arc<Terms>,
    /// The held content of an HTTP/2 connection.
    held: Option<HeldContent>,
    /// The switch that refuses requests of an HTTP/2 connection.
    refusing: Option<Refusing>,
}

impl<S> Exchange<S> {
    pub(super) fn new(service: S, terms: Terms) -> Self {
        Self {
            service,
            terms: Arc::new(terms),
            held: None,
            refusing: None,
        }
    }

    /// Adds a bound on the content of responses that waits to be sent.
    pub(super) fn holding(self, held: HeldContent) -> Self {
        Self {
            held: Some(held),
            ..self
        }
    }

    /// Refuses requests of HTTP/2 while `refusing` is on.
    pub(super) fn refusing(self, refusing: Refusing) -> Self {
        Self {
            refusing: Some(refusing),
            ..self
        }
    }
}

impl<S: Clone> Clone for Exchange<S> {
    fn clone(&self) -> Self {
        Self {
            service: self.service.clone(),
            terms: self.terms.clone(),
            held: self.held.clone(),
            refusing: self.refusing.clone(),
        }
    }
}

/// True for requests that may pause at any time: tunnels, and gRPC with its silent streams.
fn may_pause<B>(request: &Request<B>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE);
    let is_grpc = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    is_grpc || request.method() == Method::CONNECT
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<S: HttpService<Body>> hyper::service::Service<Request<hyper::body::Incoming>> for Exchange<S> {
    type Response = Response<Paced<Counted<S::ResponseBody>>>;
    type Error = BoxError;
    type Future = BoxFuture<Result<Self::Response, BoxError>>;

    fn call(&self, request: Request<hyper::body::Incoming>) -> Self::Future {
        if self.refusing.as_ref().is_some_and(Refusing::is_on) {
            return Box::pin(async { Err(h2::Error::from(h2::Reason::REFUSED_STREAM).into()) });
        }
        let terms = &*self.terms;
        let (in_flight, admitted) = terms.admit_any(request);
        let request = match admitted {
            Ok(request) => request,
            Err(status) => {
                return Box::pin(async move {
                    let counted = |body| Paced::unlimited(Counted { body, in_flight });
                    Ok(empty(status).map(counted))
                });
            }
        };
        let alt_svc = terms.alt_svc.clone();
        let held = self.held.clone();
        let mut service = self.service.clone();
        let limit = terms.handler_timeout;
        Box::pin(async move {
            let answer = async {
                std::future::poll_fn(|cx| service.poll_ready(cx))
                    .await
                    .map_err(Into::into)?;
                let response = service.call(request).await.map_err(Into::into)?;
                Ok::<_, BoxError>(response.map(Some))
            };
            let mut response = match limit {
                None => answer.await?,
                Some(limit) => match tokio::time::timeout(limit, answer).await {
                    Ok(answered) => answered?,
                    Err(_) => empty(StatusCode::SERVICE_UNAVAILABLE),
                },
            };
            if let Some(alt_svc) = alt_svc
                && !response.headers().contains_key(ALT_SVC)
            {
                response.headers_mut().insert(ALT_SVC, alt_svc.value());
            }
            Ok(response.map(|body| {
                let counted = Counted { body, in_flight };
                match held {
                    Some(held) => held.pace(counted),
                    None => Paced::unlimited(counted),
                }
            }))
        })
    }
}

/// Returns a response without content.
fn empty<B>(status: StatusCode) -> Response<Option<B>> {
    let mut response = Response::new(None);
    *response.status_mut() = status;
    response
}

pin_project! {
    /// The body of a response, if it has one. Its request is in flight until hyper has taken or dropped
    /// all of it.
    pub(super) struct Counted<B> {
        #[pin]
        body: Option<B>,
        in_flight: InFlight,
    }
}

impl<B: http_body::Body> http_body::Body for Counted<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match self.project().body.as_pin_mut() {
            Some(body) => body.poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(B::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or(SizeHint::with_exact(0), B::size_hint)
    }
}
