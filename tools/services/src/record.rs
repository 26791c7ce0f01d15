//! Recording of requests: a line in the access log, and the metrics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::files::hooks::{self, BodyObserver};
use courser::server::Peer;
use http::{Method, Request, Response, StatusCode};

use crate::access_log::AccessLog;
use crate::body::Body;
use crate::exchange::{Details, Exchange};
use crate::metrics::Metrics;

/// Records each request of a [`Site`](crate::Site) in an access log and in metrics, when its response is over.
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

/// The record of a request, which is written when this or the body of the response is dropped, whatever
/// ends it.
#[derive(Debug, Default)]
#[must_use = "the request ends when its record is dropped"]
pub(crate) struct Record(Option<Box<Noted>>);

impl Record {
    /// Takes the status of the response, and has the record follow its content.
    pub(crate) fn answered(self, response: Response<Body>) -> Response<Body> {
        let Self(Some(mut noted)) = self else {
            return response;
        };
        let exchange = &mut noted.exchange;
        exchange.status = response.status();
        // A response that ends with its header section is not polled for its end.
        let is_head = exchange.method == Method::HEAD;
        exchange.is_complete = is_head || http_body::Body::is_end_stream(response.body());
        response.map(|body| hooks::observe(body, noted))
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

impl BodyObserver for Noted {
    fn on_frame(&mut self, bytes: usize, is_last: bool) {
        self.exchange.bytes += bytes as u64;
        self.exchange.is_complete = is_last;
    }

    fn on_end(&mut self) {
        self.exchange.is_complete = true;
    }
}

/// Stands for a client that went away before there was a status, as in nginx. HTTP has no such status.
const CLIENT_CLOSED: StatusCode = match StatusCode::from_u16(499) {
    Ok(status) => status,
    Err(_) => StatusCode::BAD_REQUEST,
};
