//! Recording of requests: a line in the access log, and the metrics.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use courser::server::{self, Peer};
use http::{Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use tower::{Layer, Service, ServiceExt as _};

use crate::access_log::AccessLog;
use crate::body::Body;
use crate::exchange::{Details, Exchange};
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

    /// Begins to record a request that has just arrived.
    pub(crate) fn begin<B>(self: &Arc<Self>, request: &Request<B>) -> Record {
        if self.is_idle() {
            return Record(None);
        }
        let details = self.log.is_some().then(|| Box::new(Details::of(request)));
        let peer = request.extensions().get::<Peer>();
        Record(Some(Box::new(Noted {
            recorder: Arc::clone(self),
            exchange: Exchange {
                protocol: peer.map(Peer::protocol),
                method: request.method().clone(),
                status: CLIENT_CLOSED,
                bytes: 0,
                took: Duration::ZERO,
                is_complete: false,
            },
            details,
            began: Instant::now(),
        })))
    }
}

/// A service whose requests are recorded, made by a [`Recorder`].
#[derive(Clone, Debug)]
pub struct Recorded<S> {
    recorder: Arc<Recorder>,
    service: S,
}

impl<S> Layer<S> for Recorder {
    type Service = Recorded<S>;

    fn layer(&self, service: S) -> Recorded<S> {
        Recorded {
            recorder: Arc::new(self.clone()),
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
    type Response = Response<RecordedBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<server::Body>) -> Self::Future {
        let record = self.recorder.begin(&request);
        let answer = self.service.clone().oneshot(request);
        Box::pin(async move {
            let Ok(response) = answer.await;
            Ok(record.answered(response))
        })
    }
}

/// The record of a request, which is written when this or the body of the response is dropped, whatever
/// ends it.
#[derive(Debug, Default)]
#[must_use = "the request ends when its record is dropped"]
pub(crate) struct Record(Option<Box<Noted>>);

impl Record {
    /// Takes the status of the response, and has the record follow its content.
    pub(crate) fn answered(mut self, response: Response<Body>) -> Response<RecordedBody> {
        if let Some(noted) = &mut self.0 {
            let exchange = &mut noted.exchange;
            exchange.status = response.status();
            // A response that ends with its header section is not polled for its end.
            let is_head = exchange.method == Method::HEAD;
            exchange.is_complete = is_head || http_body::Body::is_end_stream(response.body());
        }
        response.map(|body| RecordedBody { body, record: self })
    }
}

#[derive(Debug)]
struct Noted {
    recorder: Arc<Recorder>,
    exchange: Exchange,
    /// Present if there is a log.
    details: Option<Box<Details>>,
    began: Instant,
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.exchange.took = self.began.elapsed();
        if let Some(metrics) = &self.recorder.metrics {
            metrics.note(&self.exchange);
        }
        if let (Some(log), Some(details)) = (&self.recorder.log, &self.details) {
            log.note(&self.exchange, details);
        }
    }
}

/// A body whose content is counted, if there is a log or there are metrics.
///
/// # Cancel safety
/// Polling can stop at any time: the next poll returns the next frame.
pub struct RecordedBody {
    body: Body,
    record: Record,
}

impl http_body::Body for RecordedBody {
    type Data = Bytes;
    type Error = crate::body::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        let Record(Some(noted)) = &mut this.record else {
            return polled;
        };
        let exchange = &mut noted.exchange;
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

impl fmt::Debug for RecordedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut body = f.debug_struct("RecordedBody");
        body.field("body", &self.body).finish_non_exhaustive()
    }
}

/// Stands for a client that went away before there was a status, as in nginx. HTTP has no such status.
const CLIENT_CLOSED: StatusCode = match StatusCode::from_u16(499) {
    Ok(status) => status,
    Err(_) => StatusCode::BAD_REQUEST,
};
