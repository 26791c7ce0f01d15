//! Recording of requests: a line in the access log, and the metrics.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use courser::server::{self, Peer};
use http::{Method, Request, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use tower::{Layer, Service, ServiceExt as _};

use crate::access_log::AccessLog;
use crate::body::{Body, boxed};
use crate::exchange::Exchange;
use crate::metrics::Metrics;

/// Records each request in an access log and in metrics, when its response is over.
///
/// As a [`Layer`] it wraps a service.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// The access log.
    pub log: Option<AccessLog>,
    /// The metrics.
    pub metrics: Option<Arc<Metrics>>,
}

impl Recorder {
    /// Returns true if there is nothing to record in.
    pub fn is_idle(&self) -> bool {
        self.log.is_none() && self.metrics.is_none()
    }

    fn note(&self, exchange: &Exchange) {
        if let Some(metrics) = &self.metrics {
            metrics.note(exchange);
        }
        if let Some(log) = &self.log {
            log.note(exchange);
        }
    }

    /// Answers a request with `service`, and records it when the response is over.
    pub async fn answer<S>(self, request: Request<server::Body>, service: S) -> Response<Body>
    where
        S: Service<Request<server::Body>, Response = Response<Body>, Error = Infallible>,
    {
        if self.is_idle() {
            let Ok(response) = service.oneshot(request).await;
            return response;
        }
        let began = Instant::now();
        let headers = request.headers();
        let peer = request.extensions().get::<Peer>();
        let exchange = Exchange {
            peer: peer.cloned(),
            client: peer.map(Peer::current_address),
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            host: headers.get(header::HOST).cloned(),
            referer: headers.get(header::REFERER).cloned(),
            user_agent: headers.get(header::USER_AGENT).cloned(),
            at: SystemTime::now(),
            status: CLIENT_CLOSED,
            bytes: 0,
            took: Duration::ZERO,
            is_complete: false,
        };
        let is_head = exchange.method == Method::HEAD;
        let mut noted = Noted {
            recorder: self,
            exchange,
            began,
        };
        let Ok(response) = service.oneshot(request).await;
        noted.exchange.status = response.status();
        response.map(|body| {
            // A response that ends with its header section is not polled for its end.
            noted.exchange.is_complete = is_head || http_body::Body::is_end_stream(&body);
            boxed(Observed { body, noted })
        })
    }
}

/// A service whose requests are recorded, made by a [`Recorder`].
#[derive(Clone, Debug)]
pub struct Recorded<S> {
    recorder: Recorder,
    service: S,
}

impl<S> Layer<S> for Recorder {
    type Service = Recorded<S>;

    fn layer(&self, service: S) -> Recorded<S> {
        Recorded {
            recorder: self.clone(),
            service,
        }
    }
}

impl<S> Service<Request<server::Body>> for Recorded<S>
where
    S: Service<Request<server::Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<server::Body>) -> Self::Future {
        let (recorder, service) = (self.recorder.clone(), self.service.clone());
        Box::pin(async move { Ok(recorder.answer(request, service).await) })
    }
}

/// A request that is recorded when this is dropped, whatever ends it.
#[derive(Debug)]
struct Noted {
    recorder: Recorder,
    exchange: Exchange,
    began: Instant,
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.exchange.took = self.began.elapsed();
        self.recorder.note(&self.exchange);
    }
}

/// A body whose content is counted.
struct Observed {
    body: Body,
    noted: Noted,
}

impl http_body::Body for Observed {
    type Data = Bytes;
    type Error = crate::body::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        let exchange = &mut this.noted.exchange;
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                exchange.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                exchange.is_complete = this.body.is_end_stream();
            }
            Poll::Ready(None) => exchange.is_complete = true,
            _ => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Stands for a client that went away before there was a status, as in nginx. HTTP has no such status.
const CLIENT_CLOSED: StatusCode = match StatusCode::from_u16(499) {
    Ok(status) => status,
    Err(_) => StatusCode::BAD_REQUEST,
};
