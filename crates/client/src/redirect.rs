//! Redirects (RFC 9110 §15.4).

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Uri};
use url::Url;

use super::error::{Error, ErrorKind};
use super::origin::Origin;
use super::url::without_credentials;

/// The target of a redirect.
///
/// The [client](super::Client) follows redirects automatically. This type is for callers with other rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redirect {
    /// The absolute URI of the target.
    pub uri: Uri,
    /// The method of the request to the target.
    pub method: Method,
    /// True if the body is sent again. Otherwise [`clean`](Self::clean) removes the fields that describe it.
    pub keeps_body: bool,
    /// True if the target has the same origin. Otherwise credentials must not be sent to it.
    pub is_same_origin: bool,
}

impl Redirect {
    /// Returns the redirect in a response to a request; `None` if the response is not a redirect.
    ///
    /// # Errors
    /// [`ErrorKind::Redirect`] if its target cannot be requested.
    pub fn of(
        method: &Method,
        uri: &Uri,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<Option<Self>, Error> {
        let keeps_body = match status {
            // Common behaviour, allowed by RFC 9110 §15.4.2.
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => *method != Method::POST,
            StatusCode::SEE_OTHER => false,
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
            _ => return Ok(None),
        };
        // An empty reference is the same URL. Clients do not follow it, because the server would send it again.
        let location = headers.get(header::LOCATION);
        let Some(location) = location.filter(|location| !location.is_empty()) else {
            return Ok(None);
        };
        let target = resolve(uri, location.as_bytes())?;
        let is_same_origin = Origin::of(uri)? == Origin::of(&target)?;
        let method = match *method {
            Method::HEAD => Method::HEAD,
            _ if keeps_body => method.clone(),
            _ => Method::GET,
        };
        Ok(Some(Self {
            uri: target,
            method,
            keeps_body,
            is_same_origin,
        }))
    }

    /// Removes the fields that must not be sent to the target.
    pub fn clean(&self, headers: &mut HeaderMap) {
        if !self.is_same_origin {
            for name in CREDENTIALS {
                headers.remove(name);
            }
            remove_sensitive(headers);
        }
        if !self.keeps_body {
            for name in DESCRIBING {
                headers.remove(name);
            }
        }
        // RFC 9110 §10.1.3: a page that was read over TLS is not named in a request without TLS.
        let is_secret = headers
            .get(header::REFERER)
            .is_some_and(|referer| referer.as_bytes().starts_with(b"https:"));
        if is_secret && self.uri.scheme_str() == Some("http") {
            headers.remove(header::REFERER);
        }
        // Derived from the target again.
        headers.remove(header::HOST);
    }
}

/// Removes the values that the caller has marked as secret, such as a key of an API in a field of its own.
fn remove_sensitive(headers: &mut HeaderMap) {
    if !headers.values().any(HeaderValue::is_sensitive) {
        return;
    }
    let kept = headers.iter().filter(|(_, value)| !value.is_sensitive());
    let kept: Vec<_> = kept
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    headers.clear();
    for (name, value) in kept {
        headers.append(name, value);
    }
}

/// Resolves a reference relative to a URI (RFC 3986 §5).
fn resolve(base: &Uri, reference: &[u8]) -> Result<Uri, Error> {
    let text = String::from_utf8_lossy(reference);
    let wrong = |why: String| {
        let shown = without_credentials(&text);
        let text = format!("cannot follow the redirect to '{shown}': {why}");
        Error::new(ErrorKind::Redirect, text)
    };
    let base = Url::parse(&base.to_string()).map_err(|error| wrong(error.to_string()))?;
    let mut target = base.join(&text).map_err(|error| wrong(error.to_string()))?;
    if !matches!(target.scheme(), "http" | "https") {
        return Err(wrong("only http and https are supported".to_owned()));
    }
    target.set_fragment(None);
    target
        .as_str()
        .parse()
        .map_err(|error| wrong(format!("{error}")))
}

/// Fields that must not be sent to another origin.
const CREDENTIALS: [HeaderName; 3] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::PROXY_AUTHORIZATION,
];
/// Fields that describe a body that is not sent again.
const DESCRIBING: [HeaderName; 12] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::LAST_MODIFIED,
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("repr-digest"),
    header::TRANSFER_ENCODING,
    header::EXPECT,
];

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "https://example.org:8443/a/b?c";

    fn redirect(method: &Method, status: u16, location: &'static str) -> Result<Redirect, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, location.parse().expect("a value"));
        let status = StatusCode::from_u16(status).expect("a status");
        let uri = Uri::from_static(BASE);
        Redirect::of(method, &uri, status, &headers).map(|found| found.expect("a redirect"))
    }

    #[test]
    fn references_are_resolved_against_the_request() {
        for (location, target) in [
            ("x", "https://example.org:8443/a/x"),
            ("/x?y", "https://example.org:8443/x?y"),
            ("//other.example/x", "https://other.example/x"),
            ("?z", "https://example.org:8443/a/b?z"),
            ("../../x#fragment", "https://example.org:8443/x"),
            ("http://other.example", "http://other.example/"),
            ("/a b", "https://example.org:8443/a%20b"),
        ] {
            let found = redirect(&Method::GET, 302, location).expect(location);
            assert_eq!(found.uri, target, "{location}");
        }
    }

    #[test]
    fn methods_change_as_in_other_clients() {
        let table = [
            (301, Method::POST, Method::GET, false),
            (302, Method::POST, Method::GET, false),
            (303, Method::POST, Method::GET, false),
            (307, Method::POST, Method::POST, true),
            (308, Method::POST, Method::POST, true),
            (301, Method::PUT, Method::PUT, true),
            (303, Method::PUT, Method::GET, false),
            (303, Method::HEAD, Method::HEAD, false),
            (302, Method::HEAD, Method::HEAD, true),
        ];
        for (status, method, then, keeps_body) in table {
            let found = redirect(&method, status, "/").expect("a redirect");
            assert_eq!(
                (&found.method, found.keeps_body),
                (&then, keeps_body),
                "{status} {method}"
            );
        }
    }

    #[test]
    fn credentials_stay_with_their_origin() {
        let table = [
            ("/x", true),
            ("https://example.org:8443/", true),
            ("https://example.org/", false),
            ("http://example.org:8443/", false),
            ("https://other.example:8443/", false),
        ];
        for (location, stay) in table {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, "secret".parse().expect("a value"));
            headers.insert(header::ACCEPT, "text/html".parse().expect("a value"));
            let found = redirect(&Method::GET, 302, location).expect("a redirect");
            found.clean(&mut headers);
            assert_eq!(
                headers.contains_key(header::AUTHORIZATION),
                stay,
                "{location}"
            );
            assert!(headers.contains_key(header::ACCEPT), "{location}");
        }
    }

    #[test]
    fn sensitive_values_stay_with_their_origin() {
        for (location, count) in [("/x", 3), ("https://other.example/", 2)] {
            let mut headers = HeaderMap::new();
            let mut secret = HeaderValue::from_static("secret");
            secret.set_sensitive(true);
            headers.append("x-key", secret);
            headers.append("x-key", HeaderValue::from_static("open"));
            headers.append("x-other", HeaderValue::from_static("open"));
            let found = redirect(&Method::GET, 302, location).expect("a redirect");
            found.clean(&mut headers);
            assert_eq!(headers.len(), count, "{location}");
            assert!(headers.contains_key("x-key"), "{location}");
        }
    }

    #[test]
    fn fields_of_dropped_content_are_dropped() {
        for status in [302, 303, 307] {
            let found = redirect(&Method::POST, status, "/x").expect("a redirect");
            let mut headers = HeaderMap::new();
            for name in DESCRIBING {
                headers.insert(name, "x".parse().expect("a value"));
            }
            found.clean(&mut headers);
            assert_eq!(headers.is_empty(), status != 307, "{status}");
        }
    }

    #[test]
    fn secure_pages_are_not_named_to_insecure_targets() {
        for (location, stays) in [("http://a.test/", false), ("https://a.test/", true)] {
            let found = redirect(&Method::GET, 302, location).expect("a redirect");
            let mut headers = HeaderMap::new();
            headers.insert(header::REFERER, "https://b.test/".parse().expect("a value"));
            found.clean(&mut headers);
            assert_eq!(headers.contains_key(header::REFERER), stays, "{location}");
        }
    }

    #[test]
    fn unusable_targets_are_named() {
        for location in [
            "ftp://example.org/",
            "javascript:x",
            "https://",
            "http://[1",
            "file:///etc/passwd",
            "data:text/plain,x",
        ] {
            let error = redirect(&Method::GET, 302, location).expect_err(location);
            assert_eq!(error.kind(), ErrorKind::Redirect, "{location}");
            assert!(error.to_string().contains(location), "{error}");
        }
    }

    #[test]
    fn empty_reference_is_not_followed() {
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, header::HeaderValue::from_static(""));
        let uri = Uri::from_static(BASE);
        let found = Redirect::of(&Method::GET, &uri, StatusCode::FOUND, &headers);
        assert_eq!(found.expect("no error"), None);
    }

    #[test]
    fn other_responses_are_not_redirects() {
        let uri = Uri::from_static(BASE);
        for status in [200, 300, 304, 404] {
            let status = StatusCode::from_u16(status).expect("a status");
            let mut headers = HeaderMap::new();
            headers.insert(header::LOCATION, "/x".parse().expect("a value"));
            let found = Redirect::of(&Method::GET, &uri, status, &headers).expect("no error");
            assert_eq!(found, None, "{status}");
        }
        let none = Redirect::of(&Method::GET, &uri, StatusCode::FOUND, &HeaderMap::new());
        assert_eq!(none.expect("no error"), None, "no location");
    }
}
