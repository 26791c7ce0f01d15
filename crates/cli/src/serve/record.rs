//! What is noted of each request: a line in the access log, and the metrics.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use courser::server::{self, Peer};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};
use http_body::{Frame, SizeHint};
use tower::{Service, ServiceExt as _};

use super::access_log::AccessLog;
use super::body::{Body, boxed};
use super::metrics::Metrics;

/// Where it is noted.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    pub(super) log: Option<AccessLog>,
    pub(super) metrics: Option<Arc<Metrics>>,
}

/// A request that is over.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) peer: Option<Peer>,
    /// Where the client was when it asked.
    pub(super) client: Option<SocketAddr>,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) version: Version,
    pub(super) host: Option<HeaderValue>,
    pub(super) referer: Option<HeaderValue>,
    pub(super) user_agent: Option<HeaderValue>,
    pub(super) at: SystemTime,
    pub(super) status: StatusCode,
    /// Content that was sent.
    pub(super) bytes: u64,
    pub(super) took: Duration,
    /// False when the client did not get all of it.
    pub(super) is_complete: bool,
}

impl Recorder {
    pub(super) fn is_idle(&self) -> bool {
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

    /// Answers with `service`, and notes it when the answer is over.
    pub(super) async fn answer<S>(
        self,
        request: Request<server::Body>,
        service: S,
    ) -> Response<Body>
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
            // Nobody polls for the end of what ends with its head.
            noted.exchange.is_complete = is_head || http_body::Body::is_end_stream(&body);
            boxed(Observed { body, noted })
        })
    }
}

/// Noted when it is dropped, however that comes.
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

/// A body that is counted.
struct Observed {
    body: Body,
    noted: Noted,
}

impl http_body::Body for Observed {
    type Data = Bytes;
    type Error = super::body::BoxError;

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

/// No status of HTTP's: the client went away before there was one, as nginx notes it.
const CLIENT_CLOSED: StatusCode = match StatusCode::from_u16(499) {
    Ok(status) => status,
    Err(_) => StatusCode::BAD_REQUEST,
};
