//! The target of a request: the host that it names, and its path.

use courser::server::Cause;
use http::header::HOST;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Method, Version};

use super::failure::Failure;

/// Returns the path and the query of a request for the upstream server.
pub(super) fn path(parts: &Parts) -> Result<PathAndQuery, Failure> {
    // A forwarded CONNECT would open a tunnel at the upstream server, whatever its target.
    if parts.method == Method::CONNECT {
        return Err(Cause::ConnectRefused.into());
    }
    let invalid = |reason| Failure::new(Cause::InvalidTarget, reason);
    let path = parts.uri.path_and_query();
    let path = path.ok_or_else(|| invalid("the target has no path"))?;
    match path.as_str() {
        // The asterisk stands for the server as a whole (RFC 9112 §3.2.4).
        "*" if parts.method != Method::OPTIONS => {
            Err(invalid("only OPTIONS may have the target *"))
        }
        // A slash is sent even if none was received, as in `GET http://example.org?a HTTP/1.1` (RFC 9112 §3.2.1).
        "/" => Ok(PathAndQuery::from_static("/")),
        query if query.starts_with('?') => {
            let path = PathAndQuery::try_from(["/", query].concat());
            path.map_err(|_| invalid("the target has an invalid query"))
        }
        _ => Ok(path.clone()),
    }
}

/// Returns the host of a request as the value of a Host field.
///
/// The authority of the request target (`:authority`, or the absolute form of HTTP/1.1) takes precedence over
/// the Host field (RFC 9112 §3.2.2, RFC 9113 §8.3.1). Returns `None` only for HTTP/1.0 requests without either.
///
/// # Errors
/// The reason to refuse the request: an upstream server, or a filter before it, could associate it with another
/// host.
pub(super) fn host(parts: &Parts) -> Result<Option<HeaderValue>, &'static str> {
    let mut fields = parts.headers.get_all(HOST).iter();
    let field = fields.next();
    if fields.next().is_some() {
        return Err("more than one Host field");
    }
    let named = field
        .map(|field| Authority::try_from(field.as_bytes()).map_err(|_| INVALID))
        .transpose()?;
    // The URI parser has validated it as an authority.
    let target = parts.uri.authority();
    for host in [named.as_ref(), target].into_iter().flatten() {
        check(host)?;
    }
    if let (Some(target), Some(named)) = (target, &named)
        && !is_same_host(target, named)
    {
        return Err("the request target and the Host field name different hosts");
    }
    if field.is_none() && parts.version == Version::HTTP_11 {
        // Required beside a target in absolute form, too (RFC 9112 §3.2).
        return Err("no Host field");
    }
    match (target, field) {
        // Reuses the memory of the field value.
        (Some(target), Some(field)) if field == target.as_str() => Ok(Some(field.clone())),
        (None, Some(field)) => Ok(Some(field.clone())),
        (Some(target), _) => {
            let host = HeaderValue::try_from(target.as_str());
            host.map(Some).map_err(|_| INVALID)
        }
        (None, None) => match parts.version {
            Version::HTTP_09 | Version::HTTP_10 => Ok(None),
            _ => Err("no Host field"),
        },
    }
}

/// Refuses an authority that is not `host[:port]`.
fn check(authority: &Authority) -> Result<(), &'static str> {
    let (text, host) = (authority.as_str(), authority.host());
    if host.is_empty() || text.contains('@') {
        return Err(INVALID);
    }
    // A port may be empty (RFC 3986 §3.2.3).
    match text.strip_prefix(host) {
        None | Some("" | ":") => Ok(()),
        Some(_) => authority.port_u16().map(drop).ok_or(INVALID),
    }
}

/// Compares hosts as in RFC 3986 §6.2.3: the default port of https may be omitted.
fn is_same_host(one: &Authority, other: &Authority) -> bool {
    let port = |authority: &Authority| authority.port_u16().unwrap_or(HTTPS_PORT);
    one.host().eq_ignore_ascii_case(other.host()) && port(one) == port(other)
}

const INVALID: &str = "the host is not of the form HOST[:PORT]";
const HTTPS_PORT: u16 = 443;

#[cfg(test)]
mod tests {
    use super::*;

    fn host_of(uri: &str, fields: &[&str], version: Version) -> Result<String, &'static str> {
        let mut request = http::Request::get(uri).version(version);
        for value in fields {
            request = request.header(HOST, *value);
        }
        let parts = request.body(()).expect("a request").into_parts().0;
        let host = host(&parts)?;
        Ok(host.map_or_else(String::new, |host| host.to_str().expect("text").to_owned()))
    }

    /// RFC 9112 §3.2.1, §3.2.4.
    #[test]
    fn paths_get_the_form_of_their_method() {
        for (method, target, expected) in [
            (Method::GET, "http://a.test", Some("/")),
            (Method::GET, "http://a.test#fragment", Some("/")),
            (Method::GET, "http://a.test/", Some("/")),
            (Method::GET, "http://a.test?b", Some("/?b")),
            (Method::GET, "http://a.test/b?c", Some("/b?c")),
            (Method::GET, "/b", Some("/b")),
            (Method::GET, "*", None),
            (Method::POST, "*", None),
            (Method::CONNECT, "a.test:443", None),
            (Method::CONNECT, "http://a.test/b", None),
            (Method::OPTIONS, "*", Some("*")),
            (Method::OPTIONS, "http://a.test/", Some("/")),
            (Method::OPTIONS, "http://a.test?b", Some("/?b")),
            (Method::OPTIONS, "/", Some("/")),
        ] {
            let request = http::Request::builder().method(&method).uri(target);
            let parts = request.body(()).expect("a request").into_parts().0;
            let path = super::path(&parts).ok();
            let path = path.as_ref().map(PathAndQuery::as_str);
            assert_eq!(path, expected, "{method} {target}");
        }
    }

    #[test]
    fn target_comes_before_the_host_field() {
        for (uri, fields, expected) in [
            ("https://a.test:8443/", &["a.test:8443"][..], "a.test:8443"),
            ("https://A.test/", &["a.TEST:443"], "A.test"),
            ("/", &["b.test:8443"], "b.test:8443"),
            ("/", &["[::1]:8443"], "[::1]:8443"),
            ("/", &["[::1]"], "[::1]"),
            ("/", &["a.test:"], "a.test:"),
        ] {
            for version in [Version::HTTP_11, Version::HTTP_2, Version::HTTP_3] {
                let host = host_of(uri, fields, version);
                assert_eq!(host.as_deref(), Ok(expected), "{uri} {fields:?}");
            }
        }
        for version in [Version::HTTP_10, Version::HTTP_2, Version::HTTP_3] {
            let host = host_of("https://a.test/", &[], version);
            assert_eq!(host.as_deref(), Ok("a.test"), "{version:?}");
        }
        assert_eq!(host_of("/", &[], Version::HTTP_10).as_deref(), Ok(""));
    }

    #[test]
    fn requests_for_two_hosts_are_refused() {
        for (uri, fields) in [
            ("https://a.test/", &["b.test"][..]),
            ("https://a.test/", &["a.test:8443"]),
            ("https://a.test:8443/", &["a.test"]),
            ("https://a.test/", &["a.test", "a.test"]),
            ("https://a.test/", &[""]),
            ("/", &["a.test", "b.test"]),
            ("/", &["user@a.test"]),
            ("/", &["a.test/path"]),
            ("/", &[":443"]),
            ("/", &["a.test:x"]),
            ("/", &["a.test:65536"]),
            ("/", &["a.test:80:80"]),
            ("/", &["[::1]:x"]),
            ("/", &["[::1]80"]),
            ("https://a.test/", &[]),
            ("/", &[]),
        ] {
            let host = host_of(uri, fields, Version::HTTP_11);
            assert!(host.is_err(), "{uri} {fields:?}: {host:?}");
        }
    }
}
