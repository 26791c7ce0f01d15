//! Requests and responses of CONNECT-UDP in the three versions of HTTP (RFC 9298 §3).

use http::{Request, Response, StatusCode};

use crate::messages;
pub use crate::messages::{CAPSULE_PROTOCOL, Carrier, Refused, has_capsule_protocol};
pub use crate::refusal::Refusal;
use crate::target::Target;
use crate::template::{Mismatch, Template};

/// The value of `:protocol` and `Upgrade` (RFC 9298 §6.1).
pub const UPGRADE_TOKEN: &str = "connect-udp";

/// Returns the request for a tunnel to a target. Over HTTP/3 it has the [`Protocol`](courser_http3::Protocol) in its
/// extensions; a caller over HTTP/2 adds that of its library.
///
/// # Errors
/// Returns an error if the expanded template is no URI.
pub fn connect_udp(
    template: &Template,
    target: &Target,
    carrier: Carrier,
) -> Result<Request<()>, http::Error> {
    messages::open(&template.expand(target), UPGRADE_TOKEN, carrier)
}

/// Returns the target of a request, if it is one for a tunnel. `protocol` is the value of `:protocol`.
///
/// # Errors
/// Returns the answer for another request: 400 if it is malformed, 404 for another path, 405 and 426 for another
/// method, 501 for another protocol.
pub fn check<B>(
    request: &Request<B>,
    protocol: Option<&str>,
    template: &Template,
) -> Result<Target, Refusal> {
    let target = match template.find(messages::path(request)) {
        Ok(target) => Ok(target),
        Err(Mismatch::NotThis) => {
            return Err(Refusal::new(StatusCode::NOT_FOUND, "no path of the proxy"));
        }
        Err(Mismatch::Malformed(error)) => Err(error),
    };
    messages::check(request, protocol, UPGRADE_TOKEN)?;
    target.map_err(|error| Refusal::malformed(&error.to_string()))
}

/// Returns the response that opens a tunnel: 101 over HTTP/1.1, otherwise 200.
pub fn accept(carrier: Carrier) -> Response<()> {
    messages::accept(carrier, UPGRADE_TOKEN)
}

/// Checks that a response opens a tunnel (RFC 9298 §3.3, §3.5).
///
/// # Errors
/// Returns the reason why it does not.
pub fn check_response<B>(carrier: Carrier, response: &Response<B>) -> Result<(), Refused> {
    messages::check_response(carrier, response, UPGRADE_TOKEN)
}

#[cfg(test)]
mod tests;
