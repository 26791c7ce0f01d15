//! Responses with files, and responses for files that cannot be served.

use std::ops::Range;
use std::time::SystemTime;

use http::header::{
    ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    LAST_MODIFIED, LOCATION, RETRY_AFTER, VARY,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::body::Body;
use crate::conditions::{self, Selected, Validators};
use crate::file_request::FileRequest;
use crate::serve_error::ServeError;

/// Builds the response to a request according to its conditions and its range. `headers` are those of a response
/// with the whole content, which has `len` bytes; `body` builds the body of a part.
pub(crate) fn respond(
    request: &FileRequest<'_>,
    mut headers: HeaderMap,
    modified: Option<SystemTime>,
    len: u64,
    body: impl FnOnce(Range<u64>) -> Result<Body, ServeError>,
) -> Result<Response<Body>, ServeError> {
    let verdict = match request.has_conditions {
        true => {
            let validators = Validators {
                tag: headers.get(ETAG),
                modified,
                modified_text: headers.get(LAST_MODIFIED),
            };
            conditions::evaluate(request.headers, validators, len)
        }
        false => Selected::Whole,
    };
    let (status, part) = match verdict {
        Selected::Whole => (StatusCode::OK, Some(0..len)),
        Selected::Part(part) => {
            let (first, last) = (*part.start(), *part.end());
            let text = format!("bytes {first}-{last}/{len}");
            headers.insert(CONTENT_RANGE, text_value(text));
            headers.insert(CONTENT_LENGTH, HeaderValue::from(last - first + 1));
            (StatusCode::PARTIAL_CONTENT, Some(first..last + 1))
        }
        Selected::NotModified => {
            remove_content(&mut headers);
            (StatusCode::NOT_MODIFIED, None)
        }
        Selected::PreconditionFailed => {
            remove_content(&mut headers);
            (StatusCode::PRECONDITION_FAILED, None)
        }
        Selected::Unsatisfiable => {
            remove_content(&mut headers);
            headers.insert(CONTENT_RANGE, text_value(format!("bytes */{len}")));
            (StatusCode::RANGE_NOT_SATISFIABLE, None)
        }
    };
    let body = match part {
        Some(part) if !request.is_head => body(part)?,
        _ => Body::empty(),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// Removes the header fields that describe content, for a response without content.
fn remove_content(headers: &mut HeaderMap) {
    for name in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING] {
        headers.remove(name);
    }
}

/// Redirects to the path with a trailing slash. The target has no host, so it works with every
/// name of this server.
pub(crate) fn with_slash(
    request: &FileRequest<'_>,
    prefix: &str,
) -> Result<Response<Body>, ServeError> {
    let path = request.path();
    let location = match request.uri.query() {
        Some(query) => format!("{prefix}{path}/?{query}"),
        None => format!("{prefix}{path}/"),
    };
    let location = HeaderValue::try_from(location).map_err(|_| ServeError::NotFound)?;
    let mut response = empty(StatusCode::TEMPORARY_REDIRECT);
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// Returns 405, for methods other than GET and HEAD.
pub(crate) fn not_allowed() -> Response<Body> {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED);
    let allowed = HeaderValue::from_static("GET, HEAD");
    response.headers_mut().insert(ALLOW, allowed);
    response
}

/// Returns 406, for clients that accept none of the available codings and no content without coding.
pub(crate) fn not_acceptable() -> Response<Body> {
    let mut response = plain(StatusCode::NOT_ACCEPTABLE);
    let varies = HeaderValue::from_name(ACCEPT_ENCODING);
    response.headers_mut().insert(VARY, varies);
    response
}

/// Returns the response for a file that cannot be served.
pub(crate) fn error_response(error: &ServeError) -> Response<Body> {
    match error {
        ServeError::NotFound => plain(StatusCode::NOT_FOUND),
        ServeError::Forbidden => plain(StatusCode::FORBIDDEN),
        ServeError::Exhausted(_) | ServeError::WouldBlock | ServeError::Unsettled(_) => {
            let mut response = plain(StatusCode::SERVICE_UNAVAILABLE);
            let soon = HeaderValue::from_static("1");
            response.headers_mut().insert(RETRY_AFTER, soon);
            response
        }
        ServeError::Failed(_) => plain(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// Returns a response with its status as text content.
fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::full(format!("{status}\n")));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Returns the value of a header field that consists of digits and punctuation.
fn text_value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}
