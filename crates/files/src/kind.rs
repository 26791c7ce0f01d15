//! Content types by file name.

use std::path::Path;

use http::HeaderValue;

/// Returns the value of `Content-Type` for a file of this name. Text is declared as UTF-8, because
/// browsers would guess another encoding.
pub(crate) fn of(path: &Path) -> HeaderValue {
    HeaderValue::from_static(match mime_guess::from_path(path).first_raw() {
        None => "application/octet-stream",
        Some("text/html") => "text/html; charset=utf-8",
        Some("text/plain") => "text/plain; charset=utf-8",
        Some("text/css") => "text/css; charset=utf-8",
        Some("text/javascript") => "text/javascript; charset=utf-8",
        Some("text/markdown") => "text/markdown; charset=utf-8",
        Some("text/csv") => "text/csv; charset=utf-8",
        Some("text/xml") => "text/xml; charset=utf-8",
        Some(other) => other,
    })
}

/// Returns true if content of this type should be compressed. This excludes images, which are
/// already compressed, and streams of messages, which a compressor would delay.
pub(crate) fn compresses(kind: &HeaderValue) -> bool {
    let is = |prefix: &str| kind.as_bytes().starts_with(prefix.as_bytes());
    let is_picture = is("image/") && !is("image/svg+xml");
    let is_rpc = is("application/grpc") && !is("application/grpc-web");
    !is_picture && !is_rpc && !is("text/event-stream")
}
