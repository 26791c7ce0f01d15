//! Waiting for 100 (Continue) before the content of a request is sent (RFC 9110 §10.1.1).
//!
//! HTTP/2 connections do not report interim responses, so that content is sent over them at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use courser_http3_tokio::{OnInterim, hooks};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, StatusCode, Version};
use http_body::Body as _;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::error::BoxError;
use super::request_body::RequestBody;

/// The permission to send the content of a request that expects 100 (Continue). Dropping it withdraws a permission
/// that was not granted.
#[derive(Debug)]
pub(super) struct Expectation(Arc<Permission>);

#[derive(Debug)]
struct Permission {
    state: AtomicU8,
    changed: Notify,
}

impl Expectation {
    /// Holds back the content of a request that expects 100 (Continue), until the server sends it or this time has
    /// passed. Returns `None` for a request without this expectation.
    pub(super) fn of(request: &mut Request<RequestBody>, limit: Duration) -> Option<Self> {
        if !expects_continue(request.headers()) {
            return None;
        }
        let permission = Arc::new(Permission {
            state: AtomicU8::new(PENDING),
            changed: Notify::new(),
        });
        request
            .body_mut()
            .hold(permission.clone().granted(Instant::now() + limit));
        let granting = permission.clone();
        let next = request.extensions().get::<OnInterim>().cloned();
        let on_interim = OnInterim::new(move |response| {
            if response.status() == StatusCode::CONTINUE {
                granting.decide(PENDING, GRANTED);
            }
            if let Some(next) = &next {
                hooks::call(next, response);
            }
        });
        request.extensions_mut().insert(on_interim);
        Some(Self(permission))
    }

    /// Processes the status of the final response. The content is sent after a success, which some servers report
    /// without 100 (Continue). After other responses it is withheld, and the returned expectation must be kept
    /// until the end of the response, because withdrawing the permission ends an HTTP/1.1 connection.
    pub(super) fn on_response(self, status: StatusCode) -> Option<Self> {
        let decision = match status.is_success() {
            true => GRANTED,
            false => REFUSED,
        };
        let is_decided = self.0.decide(PENDING, decision);
        (is_decided && decision == REFUSED).then_some(self)
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        if !self.0.decide(PENDING, WITHDRAWN) {
            self.0.decide(REFUSED, WITHDRAWN);
        }
    }
}

impl Permission {
    /// Changes the state if it is `from`. Returns true if it has changed.
    fn decide(&self, from: u8, to: u8) -> bool {
        let changed = self
            .state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        if changed.is_ok() {
            // The body is the only task that waits.
            self.changed.notify_one();
        }
        changed.is_ok()
    }

    /// Completes when the content may be sent, or never will be.
    async fn granted(self: Arc<Self>, deadline: Instant) -> Result<(), BoxError> {
        loop {
            match self.state.load(Ordering::Acquire) {
                PENDING => {
                    let changed = tokio::time::timeout_at(deadline, self.changed.notified());
                    if changed.await.is_err() {
                        self.decide(PENDING, GRANTED);
                    }
                }
                GRANTED => return Ok(()),
                REFUSED => self.changed.notified().await,
                _ => return Err("the server refused the request before its content".into()),
            }
        }
    }
}

/// Adds an expectation to the header section of an HTTP/1.1 request if its content is larger than `above`, or of
/// unknown length.
pub(super) fn add(headers: &mut HeaderMap, version: Version, body: &RequestBody, above: u64) {
    let named = headers.get(header::CONTENT_LENGTH);
    let named = named.and_then(|length| length.to_str().ok()?.parse().ok());
    let length = named.or_else(|| body.size_hint().exact());
    let is_large = length.is_none_or(|length| length > above);
    let has_content = !body.is_end_stream();
    if version == Version::HTTP_11 && has_content && is_large {
        let expects = HeaderValue::from_static(CONTINUE);
        headers.entry(header::EXPECT).or_insert(expects);
    }
}

fn expects_continue(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::EXPECT).into_iter();
    values.any(|value| value.as_bytes().eq_ignore_ascii_case(CONTINUE.as_bytes()))
}

const CONTINUE: &str = "100-continue";
/// Neither the server nor the time has decided.
const PENDING: u8 = 0;
/// The content may be sent.
const GRANTED: u8 = 1;
/// The server has sent another final response than a success.
const REFUSED: u8 = 2;
/// The content will not be sent.
const WITHDRAWN: u8 = 3;
/// The default of the time to wait, as in most clients.
pub(super) const WAIT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
