//! The upstream server of sessions.

use std::fmt;

use http::Uri;
use http::uri::{Authority, PathAndQuery};

/// The upstream server of sessions: a host with HTTP/3, and its port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionBackend(Authority);

impl SessionBackend {
    /// Parses `https://HOST[:PORT]`.
    ///
    /// # Errors
    /// A message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("'{text}' {what}: use https://HOST[:PORT]");
        let uri: Uri = text.parse().map_err(|_| wrong("is not a URL"))?;
        match uri.scheme_str() {
            Some("https") => {}
            Some("http" | "h2c") => {
                return Err(wrong("has no TLS, which sessions over HTTP/3 need"));
            }
            _ => return Err(wrong("has an unknown scheme")),
        }
        if !matches!(
            uri.path_and_query().map(PathAndQuery::as_str),
            None | Some("/")
        ) {
            return Err(wrong("has a path, but sessions keep their own paths"));
        }
        let authority = uri
            .authority()
            .cloned()
            .ok_or_else(|| wrong("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("has a user name, which is not supported"));
        }
        Ok(Self(authority))
    }

    /// Returns the host, without the brackets of an IPv6 address.
    pub(super) fn host(&self) -> &str {
        self.0.host().trim_matches(['[', ']'])
    }

    pub(super) fn port(&self) -> u16 {
        self.0.port_u16().unwrap_or(443)
    }
}

impl fmt::Display for SessionBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_read() {
        for (text, host, port) in [
            ("https://a.test", "a.test", 443),
            ("https://a.test:4433/", "a.test", 4433),
            ("https://[::1]:1", "::1", 1),
        ] {
            let backend = SessionBackend::parse(text).expect(text);
            assert_eq!((backend.host(), backend.port()), (host, port));
            assert_eq!(backend.to_string(), text.trim_end_matches('/'));
        }
        for (text, word) in [
            ("http://a.test", "has no TLS"),
            ("ftp://a.test", "unknown scheme"),
            ("https://a.test/path", "has a path"),
            ("https://user@a.test", "user name"),
            ("a b", "is not a URL"),
        ] {
            let error = SessionBackend::parse(text).expect_err(text);
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
