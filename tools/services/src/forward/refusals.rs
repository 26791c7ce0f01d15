//! Refusals of requests, and their responses.

use std::time::Duration;

use courser::masque::{Refusal, ReportedError};
use http::header::{PROXY_AUTHENTICATE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use super::record::Record;
use crate::body::{Body, explained};

/// Returns the refusal of a request without the credentials of a client (RFC 9110 §15.5.8).
pub(super) fn challenge(reason: &str) -> Refusal {
    let mut refusal = Refusal::new(StatusCode::PROXY_AUTHENTICATION_REQUIRED, reason);
    // In two lines, because some clients read only one challenge of a line.
    for challenge in CHALLENGES {
        let value = HeaderValue::from_static(challenge);
        refusal.headers.append(PROXY_AUTHENTICATE, value);
    }
    refusal
}

/// Returns the refusal of credentials that are not compared for this time.
pub(super) fn blocked(wait: Duration) -> Refusal {
    let reason = "too many wrong credentials from this address";
    let mut refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, reason);
    let seconds = HeaderValue::from(wait.as_secs() + 1);
    refusal.headers.insert(RETRY_AFTER, seconds);
    refusal
}

/// Returns the refusal of a protocol that the operator has not switched on.
pub(super) fn off(what: &str) -> Refusal {
    Refusal::new(
        StatusCode::NOT_IMPLEMENTED,
        &format!("this proxy does not serve {what}"),
    )
}

/// Records a refusal, and returns its response.
pub(super) fn refused(refusal: Refusal, record: &mut Record) -> Response<Body> {
    record.on_refused(refusal.status, &refusal.reason);
    page(&refusal)
}

/// Returns the response of a refusal. Its text has no reason that describes the network of the proxy.
pub(super) fn page(refusal: &Refusal) -> Response<Body> {
    let error = ReportedError::of(&refusal.headers).map(|it| it.error);
    let text = match error.as_deref() {
        Some("destination_ip_prohibited") => "the proxy does not allow this target",
        Some("dns_error") => "the name is not resolved",
        Some("dns_timeout") => "the name was not resolved in time",
        Some("connection_refused") => "the target refuses the connection",
        Some("connection_timeout") => "the target does not answer in time",
        Some("connection_terminated") => "the target has closed the connection",
        Some("http_protocol_error") => "the response of the target is invalid",
        Some("destination_ip_unroutable") => "the proxy has no route to the target",
        Some("connection_limit_reached") => "the proxy has no room for another tunnel",
        Some(error) => error,
        None => &refusal.reason,
    };
    let mut response = explained(refusal.status, text);
    for (name, value) in &refusal.headers {
        response.headers_mut().append(name, value.clone());
    }
    response
}

const CHALLENGES: [&str; 2] = [
    "Basic realm=\"courser\", charset=\"UTF-8\"",
    "Bearer realm=\"courser\"",
];

/// The reason to refuse a target with a user, which hides the host from people (RFC 9110 §4.2.4).
pub(super) const USER_IN_TARGET: &str =
    "the target names a user: credentials for the proxy belong into Proxy-Authorization";
