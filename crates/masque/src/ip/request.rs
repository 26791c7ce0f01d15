//! Requests and responses of CONNECT-IP in the three versions of HTTP (RFC 9484 §4).

use http::{Request, Response, StatusCode};

use super::scope::Scope;
use super::template::{Mismatch, Template};
use crate::messages;
pub use crate::messages::{CAPSULE_PROTOCOL, Carrier, Refused, has_capsule_protocol};
pub use crate::refusal::Refusal;

/// The value of `:protocol` and `Upgrade` (RFC 9484 §4).
pub const UPGRADE_TOKEN: &str = "connect-ip";

/// Returns the request for a tunnel. Over HTTP/3 it has the [`Protocol`](courser_http3::Protocol) in its extensions; a
/// caller over HTTP/2 adds that of its library.
///
/// # Errors
/// Returns an error if the expanded template is no URI.
pub fn connect_ip(
    template: &Template,
    scope: &Scope,
    carrier: Carrier,
) -> Result<Request<()>, http::Error> {
    messages::open(&template.expand(scope), UPGRADE_TOKEN, carrier)
}

/// Returns the scope of a request, if it is one for a tunnel. `protocol` is the value of `:protocol`.
///
/// # Errors
/// Returns the answer for another request: 400 if it is malformed, 404 for another path, 405 and 426 for another
/// method, 501 for another protocol.
pub fn check<B>(
    request: &Request<B>,
    protocol: Option<&str>,
    template: &Template,
) -> Result<Scope, Refusal> {
    let scope = match template.find(messages::path(request)) {
        Ok(scope) => Ok(scope),
        Err(Mismatch::NotThis) => {
            return Err(Refusal::new(StatusCode::NOT_FOUND, "no path of the proxy"));
        }
        Err(Mismatch::Malformed(error)) => Err(error),
    };
    messages::check(request, protocol, UPGRADE_TOKEN)?;
    scope.map_err(|error| Refusal::malformed(&error.to_string()))
}

/// Returns the response that opens a tunnel: 101 over HTTP/1.1, otherwise 200.
pub fn accept(carrier: Carrier) -> Response<()> {
    messages::accept(carrier, UPGRADE_TOKEN)
}

/// Checks that a response opens a tunnel (RFC 9484 §4.3, §4.5).
///
/// # Errors
/// Returns the reason why it does not.
pub fn check_response<B>(carrier: Carrier, response: &Response<B>) -> Result<(), Refused> {
    messages::check_response(carrier, response, UPGRADE_TOKEN)
}

#[cfg(test)]
mod tests {
    use http::{Method, Version};

    use super::*;

    fn paths() -> Template {
        Template::path(Template::WELL_KNOWN).unwrap()
    }

    /// MQ-ip-005.
    #[test]
    fn requests_survive_every_carrier() {
        let template = Template::of_proxy("proxy.example").unwrap();
        let scope = Scope::new("192.0.2.0/24", "17").unwrap();
        for carrier in [Carrier::Http1, Carrier::Http2, Carrier::Http3] {
            let request = connect_ip(&template, &scope, carrier).unwrap();
            let protocol = (carrier != Carrier::Http1).then_some(UPGRADE_TOKEN);
            assert_eq!(
                check(&request, protocol, &paths()),
                Ok(scope.clone()),
                "{carrier:?}"
            );
            assert!(has_capsule_protocol(request.headers()));
            assert_eq!(check_response(carrier, &accept(carrier)), Ok(()));
        }
        let malformed = template.expand(&scope).replace("17", "tcp");
        let request = messages::open(&malformed, UPGRADE_TOKEN, Carrier::Http3).unwrap();
        let refusal = check(&request, Some(UPGRADE_TOKEN), &paths()).expect_err("malformed");
        assert_eq!(refusal.status, StatusCode::BAD_REQUEST);
    }

    /// MQ-ip-005.
    #[test]
    fn requests_of_other_protocols_are_refused() {
        let template = Template::of_proxy("proxy.example").unwrap();
        let request = |carrier| connect_ip(&template, &Scope::default(), carrier).unwrap();
        let refusal = check(&request(Carrier::Http3), Some("connect-udp"), &paths());
        assert_eq!(
            refusal.expect_err("another").status,
            StatusCode::NOT_IMPLEMENTED
        );
        let mut get = request(Carrier::Http3);
        *get.method_mut() = Method::GET;
        let refusal = check(&get, None, &paths()).expect_err("no CONNECT");
        assert_eq!(refusal.status, StatusCode::METHOD_NOT_ALLOWED);
        let mut plain = request(Carrier::Http1);
        plain.headers_mut().remove("upgrade");
        let refusal = check(&plain, None, &paths()).expect_err("no upgrade");
        assert_eq!(refusal.status, StatusCode::UPGRADE_REQUIRED);
        assert_eq!(refusal.headers["upgrade"], "connect-ip");
        *plain.version_mut() = Version::HTTP_10;
        assert!(check(&plain, None, &paths()).is_err());
        let response = accept(Carrier::Http1);
        let refused = messages::check_response(Carrier::Http1, &response, "connect-udp");
        assert!(refused.is_err());
    }
}
