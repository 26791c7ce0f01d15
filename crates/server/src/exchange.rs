//! Requests before they reach the service: per-connection settings, bodies, and refusals.

pub(crate) mod body;
pub(crate) mod control_data;
pub(crate) mod early_data;
pub(crate) mod handler;
pub(crate) mod interim;
pub(crate) mod marks;
pub(crate) mod misdirected;
mod ticket;
mod unread;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use courser_http3_tokio as h3;
use courser_http3_tokio::hooks::Admission;
use http::header::{CONTENT_TYPE, TE};
use http::request::Parts;
use http::{Method, Request, StatusCode, Version};

use self::body::Body;
use self::early_data::TooEarly;
use self::misdirected::Names;
use crate::cause::Cause;
use crate::limits::Limits;
use crate::limits::buffers::TUNNEL;
use crate::limits::pace::{BodyRate, RequiredPace};
use crate::limits::request_memory::cost;
use crate::own_response::OwnResponse;
use crate::tally::{InFlight, Open};

/// The settings of a connection that all its requests share.
#[derive(Debug)]
pub(super) struct RequestSettings {
    open: Arc<Open>,
    /// Largest number of fields in the header section of a request, which HTTP/2 does not limit itself.
    max_fields: u32,
    body_rate: Option<BodyRate>,
    pub(crate) handler_timeout: Option<Duration>,
    /// The policy for requests in early data, or `None` if early data is off.
    early_requests: Option<TooEarly>,
    /// The only host names for which the service receives requests, if restricted.
    names: Option<Names>,
}

impl RequestSettings {
    pub(super) fn new(open: Arc<Open>, limits: &Limits) -> Self {
        Self {
            open,
            max_fields: limits.max_header_fields,
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

    /// Sets the policy for requests in early data, which only HTTP/3 supports.
    pub(super) fn over_quic(self, early_requests: Option<TooEarly>) -> Self {
        Self {
            early_requests,
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

    /// Counts a request as in flight until the guard is dropped. Returns the request for the service, or the
    /// status with which it is refused. `malformed` is the reason if the request is known to be malformed.
    pub(crate) fn admit_any<B: Into<Body>>(
        &self,
        mut request: Request<B>,
        malformed: Option<Cause>,
    ) -> (InFlight, Result<Request<Body>, StatusCode>) {
        let cost = cost(&request) + tunnel_cost(&request);
        let in_flight = self.open.begin_request(cost);
        let refusal = match malformed {
            Some(_) => Some(StatusCode::BAD_REQUEST),
            None => self.refusal(&mut request),
        };
        let refusal = match refusal {
            None if in_flight.is_refused() => Some(StatusCode::SERVICE_UNAVAILABLE),
            refusal => refusal,
        };
        let (parts, body) = request.into_parts();
        let body = body.into().of_request(&parts.headers);
        if let Some(status) = refusal {
            let cause = malformed.unwrap_or(Cause::of_refusal(status));
            self.report(cause, status, Some(&parts));
            return (in_flight, Err(status));
        }
        let request = Request::from_parts(parts, body);
        (in_flight, Ok(self.prepare(request)))
    }

    /// Reports a response that the server makes itself.
    #[cold]
    pub(crate) fn report(&self, cause: Cause, status: StatusCode, head: Option<&Parts>) {
        let peer = &self.open.record.peer;
        self.open.tally.own.report(&OwnResponse {
            cause,
            status,
            client: peer.current_address(),
            peer: Some(peer),
            head,
            first_line: &[],
        });
    }

    /// Returns the status with which a request is refused, if the service must not receive it.
    fn refusal<B>(&self, request: &mut Request<B>) -> Option<StatusCode> {
        if request.headers().len() > self.max_fields as usize {
            return Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        if let Err(status) = control_data::normalize(request) {
            return Some(status);
        }
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

    fn prepare(&self, request: Request<Body>) -> Request<Body> {
        let pace = self.body_rate.and_then(|rate| pace(&request, rate));
        let mut request = request.map(|body| body.with_pace(pace));
        let peer = self.open.record.peer.clone();
        request.extensions_mut().insert(peer);
        request
    }
}

/// Used by HTTP/3, which sends the responses of refused requests itself.
impl Admission for RequestSettings {
    type Body = Body;
    type InFlight = InFlight;

    fn admit(&self, request: Request<h3::Body>) -> (InFlight, Result<Request<Body>, StatusCode>) {
        self.admit_any(request, None)
    }

    fn on_refused(&self, status: StatusCode, head: Option<&Parts>) {
        let cause = match status {
            StatusCode::NOT_IMPLEMENTED => Cause::ConnectRefused,
            status => Cause::of_refusal(status),
        };
        self.report(cause, status, head);
    }

    fn time_limit(&self) -> Option<Duration> {
        self.handler_timeout
    }
}

/// Returns the memory of the tunnel that the stream of a CONNECT over HTTP/2 may become. Over other versions the
/// connection counts it.
fn tunnel_cost<B>(request: &Request<B>) -> u64 {
    let may_tunnel = *request.method() == Method::CONNECT && request.version() == Version::HTTP_2;
    if may_tunnel { TUNNEL } else { 0 }
}

/// Returns the pace at which the body of a request must arrive. Tunnels may be idle for any time.
fn pace<B>(request: &Request<B>, rate: BodyRate) -> Option<RequiredPace> {
    if request.method() == Method::CONNECT {
        return None;
    }
    Some(match is_grpc(request) {
        true => RequiredPace::Silence(rate.grace.max(GRPC_SILENCE)),
        false => RequiredPace::Rate(rate),
    })
}

/// Returns true for calls of gRPC, which exist only over HTTP/2 and HTTP/3.
fn is_grpc<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
        && headers.get(TE).is_some_and(|te| te == "trailers")
        && request.method() == Method::POST
        && request.version() >= Version::HTTP_2
}

/// The longest time for which the stream of a gRPC call may be silent (limit K360).
const GRPC_SILENCE: Duration = Duration::from_secs(60 * 60);
