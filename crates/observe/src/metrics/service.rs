//! A service that responds with metrics.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use tower_service::Service;

use super::open_metrics::{self, Live};
use super::source::Source;

/// Responds to GET and HEAD with the metrics in the text format of OpenMetrics, and to other methods with 405.
///
/// The path is ignored: mount the service at `/metrics`. It requires no authentication: mount it where only the
/// operator can reach it.
#[derive(Clone, Debug)]
pub struct MetricsService(Source);

impl MetricsService {
    pub(super) const fn new(source: Source) -> Self {
        Self(source)
    }
}

impl<B> Service<Request<B>> for MetricsService {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut response = Response::new(Full::default());
        match *request.method() {
            Method::GET => {
                *response.body_mut() =
                    Full::from(open_metrics::text(Box::new(Live(self.0.clone()))))
            }
            Method::HEAD => {}
            _ => {
                *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                let allowed = HeaderValue::from_static("GET, HEAD");
                response.headers_mut().insert(ALLOW, allowed);
                return ready(Ok(response));
            }
        }
        let kind = HeaderValue::from_static(OPEN_METRICS);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        ready(Ok(response))
    }
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
