//! Responses with files, and responses for files that cannot be served.

use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, ETAG, LAST_MODIFIED, LOCATION, RETRY_AFTER, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use crate::body::Body;
use crate::conditions::{self, Selected, Validators};
use crate::file_request::FileRequest;
use crate::multipart::Parts;
use crate::range::Part;
use crate::serve_error::ServeError;
use crate::unavailable::Unavailable;
use crate::{kind, path};

/// The content of a response.
#[derive(Debug)]
pub(crate) enum Content {
    One(Range<u64>),
    Several(Parts),
}

/// Builds the response to a request according to its conditions and its range. `headers` are those of a response
/// with the whole content, which has `len` bytes; `body` builds the body.
pub(crate) fn respond(
    request: &FileRequest<'_>,
    mut headers: HeaderMap,
    modified: Option<SystemTime>,
    len: u64,
    body: impl FnOnce(Content) -> Result<Body, ServeError>,
) -> Result<Response<Body>, ServeError> {
    let selected = match request.has_conditions {
        true => {
            let validators = Validators {
                tag: headers.get(ETAG),
                modified,
                modified_text: headers.get(LAST_MODIFIED),
            };
            conditions::evaluate(request.headers, validators, len, SystemTime::now())
        }
        false => Selected::Content(Part::Whole),
    };
    let (status, content) = match selected {
        // Ranges are defined for GET only (RFC 9110 §14.2).
        Selected::Content(_) if request.is_head => (StatusCode::OK, None),
        Selected::Content(Part::Whole) => (StatusCode::OK, Some(Content::One(0..len))),
        Selected::Content(Part::One(range)) => {
            let (first, last) = (range.start, range.end - 1);
            let text = format!("bytes {first}-{last}/{len}");
            headers.insert(CONTENT_RANGE, text_value(text));
            headers.insert(CONTENT_LENGTH, HeaderValue::from(range.end - first));
            (StatusCode::PARTIAL_CONTENT, Some(Content::One(range)))
        }
        // The coding of a response applies to its whole body, with the text between the parts.
        Selected::Content(Part::Several(_)) if headers.contains_key(CONTENT_ENCODING) => {
            (StatusCode::OK, Some(Content::One(0..len)))
        }
        Selected::Content(Part::Several(ranges)) => {
            let kind = headers.get(CONTENT_TYPE).cloned();
            let kind = kind.unwrap_or(HeaderValue::from_static(kind::UNKNOWN));
            let parts = Parts::new(ranges, kind, len);
            headers.insert(CONTENT_TYPE, parts.content_type());
            headers.insert(CONTENT_LENGTH, HeaderValue::from(parts.remaining()));
            (StatusCode::PARTIAL_CONTENT, Some(Content::Several(parts)))
        }
        Selected::Content(Part::Unsatisfiable) => {
            remove_content(&mut headers);
            headers.insert(CONTENT_RANGE, text_value(format!("bytes */{len}")));
            (StatusCode::RANGE_NOT_SATISFIABLE, None)
        }
        Selected::NotModified => {
            remove_content(&mut headers);
            (StatusCode::NOT_MODIFIED, None)
        }
        Selected::PreconditionFailed => {
            remove_content(&mut headers);
            (StatusCode::PRECONDITION_FAILED, None)
        }
    };
    let body = match content {
        Some(content) => body(content)?,
        None => Body::empty(),
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

/// Redirects to the path of a folder with a trailing slash. The target has no host, so it works with
/// every name of this server. It is built from the names of the folders, because the path of the request
/// may begin with two slashes, after which a browser expects a host.
pub(crate) fn with_slash(
    request: &FileRequest<'_>,
    folder: &Path,
    prefix: &str,
) -> Result<Response<Body>, ServeError> {
    let path = path::to_url(folder);
    let location = match request.uri.query() {
        Some(query) => format!("{prefix}/{path}/?{query}"),
        None => format!("{prefix}/{path}/"),
    };
    let location = HeaderValue::try_from(location).map_err(|_| ServeError::NotFound)?;
    let mut response = empty(StatusCode::TEMPORARY_REDIRECT);
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// Returns the response to a method other than GET and HEAD, which depends on no file.
pub(crate) fn other_method(method: &Method) -> Response<Body> {
    let mut response = match *method {
        // RFC 9110 §9.3.7. A response without Access-Control-Allow-Origin also ends a preflight.
        Method::OPTIONS => empty(StatusCode::NO_CONTENT),
        Method::POST
        | Method::PUT
        | Method::DELETE
        | Method::CONNECT
        | Method::TRACE
        | Method::PATCH => plain(StatusCode::METHOD_NOT_ALLOWED),
        // RFC 9110 §9.1.
        _ => return plain(StatusCode::NOT_IMPLEMENTED),
    };
    let allowed = HeaderValue::from_static("GET, HEAD, OPTIONS");
    response.headers_mut().insert(ALLOW, allowed);
    response
}

/// Returns 406, for clients that accept none of the available codings and no content without coding.
pub(crate) fn not_acceptable() -> Response<Body> {
    let mut response = plain(StatusCode::NOT_ACCEPTABLE);
    vary_by_coding(&mut response);
    response
}

/// Marks a response as one that depends on the codings that the client accepts.
pub(crate) fn vary_by_coding(response: &mut Response<Body>) {
    let varies = HeaderValue::from_name(ACCEPT_ENCODING);
    response.headers_mut().insert(VARY, varies);
}

/// Returns the response for a file that cannot be served.
pub(crate) fn error_response(error: &ServeError) -> Response<Body> {
    match (error, Unavailable::of(error)) {
        (_, Some(reason)) => reason.into_response(),
        (ServeError::Forbidden, None) => plain(StatusCode::FORBIDDEN),
        (_, None) => plain(StatusCode::NOT_FOUND),
    }
}

impl Unavailable {
    /// Returns the response for this reason, for handlers of folders.
    pub fn into_response(self) -> Response<Body> {
        let mut response = match self {
            Self::Failed => plain(StatusCode::INTERNAL_SERVER_ERROR),
            _ => plain(StatusCode::SERVICE_UNAVAILABLE),
        };
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            let soon = HeaderValue::from_static("1");
            response.headers_mut().insert(RETRY_AFTER, soon);
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Returns a response with its status as text content. Caches must not reuse it without asking: a file
/// may appear at any time.
fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::full(format!("{status}\n")));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    let fresh = HeaderValue::from_static("no-cache");
    response.headers_mut().insert(CACHE_CONTROL, fresh);
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
