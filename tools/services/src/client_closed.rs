//! The status of requests whose client has left.

use http::StatusCode;

/// Recorded if the client disconnected before there was a status, as in nginx. HTTP defines no such status.
pub(crate) const CLIENT_CLOSED: StatusCode = match StatusCode::from_u16(499) {
    Ok(status) => status,
    Err(_) => StatusCode::BAD_REQUEST,
};
