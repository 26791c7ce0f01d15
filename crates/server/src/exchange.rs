//! The user's service, wrapped in what every request needs.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use courser_http3_tokio::hooks;
use courser_http3_tokio::{self as h3, HttpService};
use http::header::{ALT_SVC, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_service::Service;

use super::TooEarly;
use super::body::Body;
use super::budgets::Refusing;
use super::early_data;
use super::held::{HeldContent, Paced};
use super::limits::Limits;
use super::misdirected::Names;
use super::pace::BodyRate;
use super::phase::Part;
use super::request_memory::cost;
use super::tally::{InFlight, Open};
use super::tasks::Task;

/// The announcement of HTTP/3 in responses (RFC 7838).
#[derive(Clone, Debug)]
pub(super) struct AltSvcHeader {
    pub(super) announced: HeaderValue,
    pub(super) part: Part,
    /// The task that accepts clients over QUIC.
    pub(super) quic: Option<Arc<Task>>,
}

impl AltSvcHeader {
    /// Returns the value. A draining server and one whose QUIC socket has failed withdraw the
    /// announcement: clients that remember it would try a port that is closed.
    pub(super) fn value(&self) -> HeaderValue {
        let is_stopped = self.quic.as_ref().is_some_and(|task| task.is_stopped());
        if is_stopped || self.part.is_draining() {
            HeaderValue::from_static("clear")
        } else {
            self.announced.clone()
        }
    }
}

/// Wraps a service: adds peers to requests and common fields to responses, and counts them.
#[derive(Debug)]
pub(super) struct Exchange<S> {
    service: S,
    // Each request clones the rest.
    terms: Arc<Terms>,
    /// The time limit of a service that is not ready for an HTTP/3 request.
    readying: Option<Pin<Box<Sleep>>>,
    /// The held content of an HTTP/2 connection.
    held: Option<HeldContent>,
    /// The switch that refuses requests of an HTTP/2 connection.
    refusing: Option<Refusing>,
}

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

    fn prepare<B: Into<Body>>(&self, request: Request<B>) -> Request<Body> {
        let rate = self.body_rate.filter(|_| !may_pause(&request));
        let mut request = request.map(|body| body.into().with_rate(rate));
        let peer = self.open.record.peer.clone();
        request.extensions_mut().insert(peer);
        request
    }
}

impl<S> Exchange<S> {
    pub(super) fn new(service: S, terms: Terms) -> Self {
        Self {
            service,
            terms: Arc::new(terms),
            readying: None,
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
            readying: None,
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

/// The service for HTTP/3.
impl<S: HttpService<Body>> Service<Request<h3::Body>> for Exchange<S> {
    type Response = Response<Answer<S::ResponseBody>>;
    type Error = S::Error;
    type Future = Answering<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if let Poll::Ready(ready) = self.service.poll_ready(cx) {
            return Poll::Ready(ready);
        }
        let Some(limit) = self.terms.handler_timeout else {
            return Poll::Pending;
        };
        let readying = self
            .readying
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        // The request is answered without the service.
        readying.as_mut().poll(cx).map(Ok)
    }

    fn call(&mut self, request: Request<h3::Body>) -> Self::Future {
        let terms = &*self.terms;
        let in_flight = terms.open.begin_request(cost(&request));
        if terms.is_misdirected(&request) {
            return Answering::refused(in_flight, StatusCode::MISDIRECTED_REQUEST);
        }
        if let Some(policy) = &terms.early_requests
            && early_data::is_early(&request)
        {
            let tally = &terms.open.tally;
            if policy.refuses(&request) {
                tally.requests_too_early.fetch_add(1, Relaxed);
                return Answering::refused(in_flight, StatusCode::TOO_EARLY);
            }
            tally.early_requests.fetch_add(1, Relaxed);
        }
        let request = terms.prepare(request);
        let limit = terms.handler_timeout;
        let readying = self.readying.take();
        let is_late = readying.as_ref().is_some_and(|end| end.is_elapsed());
        Answering {
            future: (!is_late && !in_flight.is_refused()).then(|| self.service.call(request)),
            refusal: StatusCode::SERVICE_UNAVAILABLE,
            in_flight: Some(in_flight),
            limit,
            end: readying,
        }
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The service for HTTP/2 and HTTP/1.1.
impl<S: HttpService<Body>> hyper::service::Service<Request<hyper::body::Incoming>> for Exchange<S> {
    type Response = Response<Paced<Answer<S::ResponseBody>>>;
    type Error = BoxError;
    type Future = BoxFuture<Result<Self::Response, BoxError>>;

    fn call(&self, request: Request<hyper::body::Incoming>) -> Self::Future {
        if self.refusing.as_ref().is_some_and(Refusing::is_on) {
            return Box::pin(async { Err(h2::Error::from(h2::Reason::REFUSED_STREAM).into()) });
        }
        let terms = &*self.terms;
        let in_flight = terms.open.begin_request(cost(&request));
        let refusal = match in_flight.is_refused() {
            true => Some(StatusCode::SERVICE_UNAVAILABLE),
            false if terms.is_misdirected(&request) => Some(StatusCode::MISDIRECTED_REQUEST),
            false => None,
        };
        if let Some(refusal) = refusal {
            return Box::pin(async move {
                let answer = |body| Paced::unlimited(Answer { body, in_flight });
                Ok(empty(refusal).map(answer))
            });
        }
        let mut request = terms.prepare(request);
        if terms.tells_of_interim {
            request
                .extensions_mut()
                .insert(hooks::unsupported_interim());
        }
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
                    Err(_) => unavailable(),
                },
            };
            if let Some(alt_svc) = alt_svc
                && !response.headers().contains_key(ALT_SVC)
            {
                response.headers_mut().insert(ALT_SVC, alt_svc.value());
            }
            Ok(response.map(|body| {
                let answer = Answer { body, in_flight };
                match held {
                    Some(held) => held.pace(answer),
                    None => Paced::unlimited(answer),
                }
            }))
        })
    }
}

pin_project! {
    /// A response that the service computes.
    pub(super) struct Answering<F> {
        // `None` if the request is refused, or once it has taken too long.
        #[pin]
        future: Option<F>,
        refusal: StatusCode,
        in_flight: Option<InFlight>,
        // The time limit, and its end once the response had to be waited for.
        limit: Option<Duration>,
        end: Option<Pin<Box<Sleep>>>,
    }
}

impl<F> Answering<F> {
    /// The answer to a request that the service does not receive.
    fn refused(in_flight: InFlight, refusal: StatusCode) -> Self {
        Self {
            future: None,
            refusal,
            in_flight: Some(in_flight),
            limit: None,
            end: None,
        }
    }
}

impl<F, B, E> Future for Answering<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<Answer<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let answered = match this.future.as_mut().as_pin_mut() {
            Some(future) => future.poll(cx).map_ok(|response| response.map(Some)),
            None => Poll::Ready(Ok(empty(*this.refusal))),
        };
        let response = match (answered, *this.limit) {
            (Poll::Ready(answered), _) => answered?,
            (Poll::Pending, None) => return Poll::Pending,
            (Poll::Pending, Some(limit)) => {
                let end = this.end;
                let end = end.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
                ready!(end.as_mut().poll(cx));
                this.future.set(None);
                unavailable()
            }
        };
        let in_flight = this.in_flight.take().expect("not polled after it resolved");
        Poll::Ready(Ok(response.map(|body| Answer { body, in_flight })))
    }
}

/// Returns the response for a request whose service is too slow, or that has no memory.
fn unavailable<B>() -> Response<Option<B>> {
    empty(StatusCode::SERVICE_UNAVAILABLE)
}

/// Returns a response without content.
fn empty<B>(status: StatusCode) -> Response<Option<B>> {
    let mut response = Response::new(None);
    *response.status_mut() = status;
    response
}

pin_project! {
    /// The body of a response, if it has one. Its request is in flight until the protocol has taken
    /// or dropped all of it.
    pub(super) struct Answer<B> {
        #[pin]
        body: Option<B>,
        in_flight: InFlight,
    }
}

impl<B: http_body::Body> http_body::Body for Answer<B> {
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
