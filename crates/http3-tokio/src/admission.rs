//! Admission of requests by a server that limits and counts them.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use courser_quic::runtime::{self, Sleep};
use http::{Request, StatusCode};

use super::body::Body;

/// Decides which requests of a connection the service receives.
pub trait Admission: Send + Sync + 'static {
    /// The body of the requests that the service receives.
    type Body: Send;

    /// A guard that is held until the response is sent, or the request has ended without one.
    type InFlight: Send + 'static;

    /// Admits a request once the service is ready for it. For a refused request the server sends a response with
    /// the returned status without calling the service.
    fn admit(
        &self,
        request: Request<Body>,
    ) -> (Self::InFlight, Result<Request<Self::Body>, StatusCode>);

    /// Returns the time limit for the service to become ready and respond. The response to requests beyond it is
    /// `503 Service Unavailable`.
    fn time_limit(&self) -> Option<Duration>;
}

/// Admits all requests, without a time limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmitAll;

impl Admission for AdmitAll {
    type Body = Body;
    type InFlight = ();

    fn admit(&self, request: Request<Body>) -> ((), Result<Request<Body>, StatusCode>) {
        ((), Ok(request))
    }

    fn time_limit(&self) -> Option<Duration> {
        None
    }
}

/// The time limit of one request. It starts when the service is first waited for, so that most requests need no
/// timer.
pub(crate) struct TimeLimit {
    limit: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl TimeLimit {
    pub(crate) const fn new(limit: Option<Duration>) -> Self {
        Self { limit, timer: None }
    }

    /// Returns `Ready` once the limit has expired.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(limit) = self.limit else {
            return Poll::Pending;
        };
        let timer = &mut self.timer;
        let timer = timer.get_or_insert_with(|| Box::pin(runtime::sleep(limit)));
        timer.as_mut().poll(cx)
    }
}
