//! Recording of requests in the access log and in metrics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::files::Unavailable;
use courser::files::hooks::{self, BodyObserver};
use courser::server::Cause;
use http::{Method, Request, Response, StatusCode};

use crate::access_log::AccessLog;
use crate::body::{Body, BoxError};
use crate::client_closed::CLIENT_CLOSED;
use crate::exchange::{Details, Exchange};
use crate::metrics::Metrics;
use crate::proxy::{ContentFailure, UpstreamFacts};
use crate::request_id::{RequestId, X_REQUEST_ID};

/// Records each request of a [`Site`](crate::Site) in an access log and in metrics when its response ends.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// The access log, or `None` to write none.
    pub log: Option<AccessLog>,
    /// The metrics, or `None` to count nothing.
    pub metrics: Option<Arc<Metrics>>,
}

impl Recorder {
    /// Returns true if neither a log nor metrics are set.
    pub fn is_empty(&self) -> bool {
        self.log.is_none() && self.metrics.is_none()
    }

    /// Starts to record a request that has just arrived. If the log has IDs of requests, the request gets one,
    /// which replaces that of the client.
    pub(crate) fn begin<B>(self: &Arc<Self>, request: &mut Request<B>) -> Record {
        if self.is_empty() {
            return Record(None);
        }
        let details = self.log.as_ref().map(|log| {
            let mut details = Box::new(Details::of(request));
            if log.has_request_ids() {
                let id = RequestId::next();
                details.request_id = Some(id);
                if let Some(value) = id.value() {
                    request.headers_mut().insert(X_REQUEST_ID, value);
                }
            }
            details
        });
        Record(Some(Box::new(PendingRecord {
            recorder: Arc::clone(self),
            exchange: Exchange {
                method: request.method().clone(),
                status: CLIENT_CLOSED,
                bytes: 0,
                took: Duration::ZERO,
                is_complete: false,
                cause: None,
                upstream: UpstreamFacts::default(),
            },
            details,
            began: Instant::now(),
        })))
    }
}

/// The record of a request. It is written when this or the body of the response is dropped, so that every
/// request is recorded.
#[derive(Debug, Default)]
#[must_use = "the request ends when its record is dropped"]
pub(crate) struct Record(Option<Box<PendingRecord>>);

impl Record {
    /// Returns the record of what happens at the upstream server, if it is kept.
    pub(crate) fn upstream(&mut self) -> Option<&mut UpstreamFacts> {
        let pending = self.0.as_mut()?;
        Some(&mut pending.exchange.upstream)
    }

    /// Sets the status of the response, and wraps its content to record its size and end.
    pub(crate) fn answered(self, response: Response<Body>) -> Response<Body> {
        let Self(Some(mut pending)) = self else {
            return response;
        };
        let exchange = &mut pending.exchange;
        exchange.status = response.status();
        exchange.cause = cause_of(&response);
        // The body of a response to HEAD is not polled to its end.
        let is_head = exchange.method == Method::HEAD;
        exchange.is_complete = is_head || http_body::Body::is_end_stream(response.body());
        response.map(|body| hooks::observe(body, pending))
    }
}

#[derive(Debug)]
struct PendingRecord {
    recorder: Arc<Recorder>,
    exchange: Exchange,
    /// Present if there is an access log.
    details: Option<Box<Details>>,
    began: Instant,
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        self.exchange.took = self.began.elapsed();
        if std::thread::panicking() {
            if self.exchange.status == CLIENT_CLOSED {
                self.exchange.status = StatusCode::INTERNAL_SERVER_ERROR;
            }
            self.exchange.cause = Some(Cause::HandlerPanicked);
        }
        if !self.exchange.is_complete && self.exchange.cause.is_none() {
            self.exchange.cause = Some(Cause::ClientClosed);
        }
        if let Some(metrics) = &self.recorder.metrics {
            metrics.record(&self.exchange);
        }
        if let (Some(log), Some(details)) = (&self.recorder.log, &self.details) {
            log.record(&self.exchange, details);
        }
    }
}

impl BodyObserver for PendingRecord {
    fn on_frame(&mut self, bytes: usize, is_last: bool) {
        self.exchange.bytes += bytes as u64;
        self.exchange.is_complete = is_last;
    }

    fn on_end(&mut self) {
        self.exchange.is_complete = true;
    }

    fn on_error(&mut self, error: &BoxError) {
        self.exchange.is_complete = false;
        let cause = ContentFailure::cause_of(&**error);
        let cause = cause.or_else(|| cause_of_file(unavailable(&**error)?));
        self.exchange.cause = cause.or(Some(Cause::ContentFailed));
    }
}

/// Returns the cause of a response that the server made itself.
fn cause_of<B>(response: &Response<B>) -> Option<Cause> {
    let extensions = response.extensions();
    let of_file = || cause_of_file(*extensions.get::<Unavailable>()?);
    extensions.get().copied().or_else(of_file)
}

fn cause_of_file(reason: Unavailable) -> Option<Cause> {
    Some(match reason {
        Unavailable::Busy => Cause::DiskBusy,
        Unavailable::OutOfDescriptors => Cause::OutOfDescriptors,
        Unavailable::OutOfMemory => Cause::OutOfMemory,
        Unavailable::Unsettled => Cause::FileUnsettled,
        Unavailable::Failed => Cause::FileFailed,
        _ => return None,
    })
}

/// Returns the reason why the content of a file ended.
fn unavailable(error: &(dyn std::error::Error + 'static)) -> Option<Unavailable> {
    let error = error.downcast_ref::<std::io::Error>()?;
    error.get_ref()?.downcast_ref().copied()
}
