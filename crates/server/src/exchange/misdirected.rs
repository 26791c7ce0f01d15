//! Requests for hosts that a connection does not serve (RFC 9110 §15.5.20, RFC 9114 §3.3).

use std::net::IpAddr;
use std::sync::Arc;

use http::header::HOST;
use http::uri::Authority;
use http::{Method, Request};

/// The hosts that a connection serves.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// The names in the certificate.
    names: Arc<[String]>,
    /// The address to which the client has connected, which health checks use as the host. No name of another site
    /// can be equal to it.
    local: Option<IpAddr>,
}

impl Names {
    /// Returns the names of a certificate, or `None` if they are unknown, as with a custom resolver. `local` is the
    /// address to which the client has connected.
    pub(crate) fn new(names: Vec<String>, local: Option<IpAddr>) -> Option<Self> {
        let names: Option<Arc<[String]>> = (!names.is_empty()).then(|| names.into());
        names.map(|names| Self { names, local })
    }

    /// Returns true if the host of a request is not among the hosts.
    ///
    /// The target of a CONNECT request is not checked, except that of extended CONNECT (RFC 9220), which has a
    /// scheme. An HTTP/1.0 request may have no host.
    pub(crate) fn refuse<B>(&self, request: &Request<B>) -> bool {
        if request.method() == Method::CONNECT && request.uri().scheme().is_none() {
            return false;
        }
        let uri = request.uri().authority();
        if let Some(authority) = uri {
            return !self.has(authority.host());
        }
        match request.headers().get(HOST) {
            None => false,
            Some(value) => match Authority::try_from(value.as_bytes()) {
                Ok(authority) => !self.has(authority.host()),
                Err(_) => true,
            },
        }
    }

    fn has(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let address = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let host = address.unwrap_or(host);
        let is_local = || self.local.is_some_and(|local| host.parse() == Ok(local));
        let is_named = self.names.iter().any(|name| match name.strip_prefix("*.") {
            // A wildcard matches one label (RFC 9525 §6.3).
            Some(parent) => host.split_once('.').is_some_and(|(label, rest)| {
                !label.is_empty() && rest.eq_ignore_ascii_case(parent)
            }),
            None => name.eq_ignore_ascii_case(host),
        });
        is_named || is_local()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let names = ["a.test", "*.B.test", "127.0.0.1", "::1"];
        let local = Some("192.0.2.7".parse().expect("an address"));
        Names::new(names.map(str::to_owned).to_vec(), local).expect("at least one name")
    }

    fn request(method: Method, uri: &str, host: Option<&str>) -> Request<()> {
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        request.body(()).expect("a request")
    }

    #[test]
    fn hosts_are_those_of_the_certificate() {
        for (host, refused) in [
            ("a.test", false),
            ("A.TEST.", false),
            ("a.test:8443", false),
            ("x.b.test", false),
            ("127.0.0.1:4433", false),
            ("[::1]:4433", false),
            ("b.test", true),
            ("x.y.b.test", true),
            (".b.test", true),
            ("a.test.evil", true),
            ("other.test", true),
            ("127.0.0.2", true),
            ("192.0.2.7:8443", false),
            ("192.0.2.8", true),
        ] {
            let of_uri = request(Method::GET, &format!("https://{host}/x"), None);
            assert_eq!(names().refuse(&of_uri), refused, "{host}");
            let of_field = request(Method::GET, "/x", Some(host));
            assert_eq!(names().refuse(&of_field), refused, "Host: {host}");
        }
    }

    #[test]
    fn uri_precedes_the_host_field_and_an_invalid_host_is_refused() {
        let both = request(Method::GET, "https://a.test/", Some("other.test"));
        assert!(!names().refuse(&both));
        assert!(names().refuse(&request(Method::GET, "/", Some("a b"))));
        assert!(
            !names().refuse(&request(Method::GET, "/", None)),
            "HTTP/1.0"
        );
    }

    #[test]
    fn tunnels_and_certificates_without_names_refuse_nothing() {
        let tunnel = request(Method::CONNECT, "other.test:443", None);
        assert!(!names().refuse(&tunnel));
        let extended = request(Method::CONNECT, "https://other.test/chat", None);
        assert!(names().refuse(&extended));
        assert!(Names::new(Vec::new(), None).is_none());
    }
}
