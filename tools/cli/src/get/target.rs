//! The targets of requests: URLs as users write them, with as few changes as curl makes.

use http::Uri;
use http::uri::PathAndQuery;
use url::Url;

use super::exit::{Failed, UNSUPPORTED_PROTOCOL, URL_MALFORMED};
use crate::transfer::percent_encode;

/// A URL whose path and query are sent as they were written.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The scheme, the host and the credentials.
    url: Url,
    path: String,
    query: Option<String>,
    fragment: Option<String>,
}

impl Target {
    /// Parses a URL, whose scheme may be missing. Resolves dots in its path unless `as_is`.
    pub(super) fn parse(scheme: &str, text: &str, as_is: bool) -> Result<Self, Failed> {
        let text = text.trim();
        let wrong =
            |why: String| Failed::new(URL_MALFORMED, format!("'{text}' is not a URL: {why}"));
        let whole = match scheme_of(text) {
            Some(given) if !is_http(given) => {
                let text = format!("scheme '{given}' is not supported: use https:// or http://");
                return Err(Failed::new(UNSUPPORTED_PROTOCOL, text));
            }
            Some(_) => text.to_owned(),
            None => format!("{scheme}://{text}"),
        };
        let url = Url::parse(&whole).map_err(|error| wrong(error.to_string()))?;
        let rest = whole.split_once("://").map_or("", |(_, rest)| rest);
        let has_no_host = rest.starts_with(['/', '?', '#']);
        if has_no_host || url.host_str().is_none_or(str::is_empty) {
            return Err(Failed::new(URL_MALFORMED, format!("'{text}' has no host")));
        }
        let (rest, fragment) = match rest.split_once('#') {
            Some((rest, fragment)) => (rest, Some(fragment.to_owned())),
            None => (rest, None),
        };
        let start = rest.find(['/', '?']).unwrap_or(rest.len());
        let (path, query) = match rest[start..].split_once('?') {
            Some((path, query)) => (path, Some(allowed(query, false))),
            None => (&rest[start..], None),
        };
        let path = match path {
            "" => "/".to_owned(),
            path if as_is => allowed(path, true),
            path => allowed(&without_dots(path), true),
        };
        Ok(Self {
            url,
            path,
            query,
            fragment,
        })
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the fragment, which is not sent.
    pub(super) fn fragment(&self) -> Option<&str> {
        self.fragment.as_deref()
    }

    /// Appends to the query.
    pub(super) fn add_query(&mut self, more: &str) {
        let more = allowed(more, false);
        self.query = Some(match self.query.take() {
            Some(query) if !query.is_empty() => format!("{query}&{more}"),
            _ => more,
        });
    }

    /// Appends the name of a file to the path of a folder.
    pub(super) fn add_file_name(&mut self, file: &str) {
        if self.path.ends_with('/')
            && let Some(name) = std::path::Path::new(file).file_name()
        {
            let name = percent_encode(name.to_string_lossy().as_bytes());
            self.path.push_str(&name);
        }
    }

    /// Returns the URI without credentials and fragment. `other` replaces its path and query.
    pub(super) fn uri(&self, other: Option<&str>) -> Result<Uri, Failed> {
        let target = match (other, &self.query) {
            (Some(other), _) => allowed(other, false),
            (None, Some(query)) => format!("{}?{query}", self.path),
            (None, None) => self.path.clone(),
        };
        let wrong = |why: String| {
            let text = format!("'{target}' cannot be the target of a request: {why}");
            Failed::new(URL_MALFORMED, text)
        };
        if !target.starts_with('/') && target != "*" {
            return Err(wrong(
                "it begins neither with a slash nor is it an asterisk".to_owned(),
            ));
        }
        let path: PathAndQuery = target.parse().map_err(|error| wrong(format!("{error}")))?;
        let host = self.url.host_str().unwrap_or_default();
        let authority = match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let uri = Uri::builder()
            .scheme(self.url.scheme())
            .authority(authority);
        uri.path_and_query(path)
            .build()
            .map_err(|error| wrong(error.to_string()))
    }
}

/// Returns the scheme of a URL that has one.
pub(super) fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    is_scheme.then_some(scheme)
}

fn is_http(scheme: &str) -> bool {
    ["http", "https"]
        .iter()
        .any(|it| scheme.eq_ignore_ascii_case(it))
}

/// Percent-encodes the bytes that a target cannot have: spaces, control characters, text that is no ASCII, and
/// characters that the client refuses.
fn allowed(text: &str, is_path: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_refused = match byte {
            0..=0x20 | 0x7f..=0xff | b'"' | b'<' | b'>' | b'#' => true,
            b'`' => is_path,
            _ => false,
        };
        if is_refused {
            encoded.push_str(&format!("%{byte:02X}"));
        } else {
            encoded.push(char::from(byte));
        }
    }
    encoded
}

/// Removes the segments `.` and `..` (RFC 3986 §5.2.4).
fn without_dots(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    let mut all = path.split('/').skip(1).peekable();
    while let Some(segment) = all.next() {
        let is_last = all.peek().is_none();
        match segment {
            "." if is_last => segments.push(""),
            "." => {}
            ".." => {
                segments.pop();
                if is_last {
                    segments.push("");
                }
            }
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        Target::parse("http", text, false).expect(text)
    }

    #[test]
    fn paths_and_queries_are_sent_as_written() {
        for (text, uri) in [
            ("a.test", "http://a.test/"),
            ("a.test?x=1", "http://a.test/?x=1"),
            ("a.test/?u=b://c", "http://a.test/?u=b://c"),
            ("https://A.test:443/x", "https://a.test/x"),
            ("http://a.test/a'b(c)*!,;@:~", "http://a.test/a'b(c)*!,;@:~"),
            (
                "http://a.test/?a='b'&c={d}|[e]",
                "http://a.test/?a='b'&c={d}|[e]",
            ),
            ("http://a.test/a b?c d", "http://a.test/a%20b?c%20d"),
            (
                "http://a.test/é?\"<>\"",
                "http://a.test/%C3%A9?%22%3C%3E%22",
            ),
            ("http://a.test/%2e%2E/x%zz", "http://a.test/%2e%2E/x%zz"),
            ("http://a.test/a/./b/../../c/..", "http://a.test/"),
            ("http://a.test/a/./b/../c/.", "http://a.test/a/c/"),
            ("http://a.test/../..//x", "http://a.test//x"),
            ("http://u:p@a.test/x#y", "http://a.test/x"),
            ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ] {
            assert_eq!(
                target(text).uri(None).expect(text).to_string(),
                uri,
                "{text}"
            );
        }
    }

    #[test]
    fn dots_stay_on_request() {
        let target = Target::parse("http", "a.test/a/../b/./c", true).expect("a URL");
        assert_eq!(target.uri(None).expect("a URI"), "http://a.test/a/../b/./c");
    }

    #[test]
    fn targets_can_be_extended_and_replaced() {
        let mut target = target("http://a.test/dir/?x=1#part");
        assert_eq!(target.fragment(), Some("part"));
        target.add_query("y=2 3");
        target.add_file_name("/tmp/my file");
        assert_eq!(
            target.uri(None).expect("a URI"),
            "http://a.test/dir/my%20file?x=1&y=2%203"
        );
        assert_eq!(target.uri(Some("*")).expect("a URI").path(), "*");
        assert_eq!(target.uri(Some("/z?q")).expect("a URI").path(), "/z");
        assert!(target.uri(Some("z")).is_err());
    }

    #[test]
    fn text_without_a_host_is_refused() {
        for wrong in ["http://", "http:///x", "", "http://[x]/"] {
            let failed = Target::parse("http", wrong, false).expect_err(wrong);
            assert_eq!(failed.code, URL_MALFORMED, "{wrong}");
        }
        for other in ["file:///x", "ftp://a.test/", "foo://a"] {
            let failed = Target::parse("http", other, false).expect_err(other);
            assert_eq!(failed.code, UNSUPPORTED_PROTOCOL, "{other}");
        }
    }
}
