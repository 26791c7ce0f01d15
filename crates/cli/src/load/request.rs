//! Requests, made once and copied for each that is sent.

use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;

use super::args::Flags;
use super::pattern::Pattern;
use crate::error::Failure;

/// The version of HTTP that a connection speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Spoken {
    Http1,
    Http2,
    Http3,
}

impl Spoken {
    /// Its name in ALPN.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
            Self::Http3 => "h3",
        }
    }
}

/// What is sent, in turn.
#[derive(Debug)]
pub(super) struct Requests {
    method: Method,
    body: Bytes,
    /// With authority, for HTTP/2 and 3.
    whole: Vec<Uri>,
    headers: HeaderMap,
    /// Without, for HTTP/1.1, whose fields name the host.
    origin_form: Vec<Uri>,
    headers_with_host: HeaderMap,
    /// Where paths come from that are not there yet.
    pattern: Option<Pattern>,
}

impl Requests {
    /// Requests for `urls`, at least one, which name one server; with a pattern, for what is drawn
    /// from it at that server.
    pub(super) fn new(
        flags: &Flags,
        urls: Vec<Uri>,
        pattern: Option<Pattern>,
    ) -> Result<Self, Failure> {
        let body = body(flags)?;
        let mut headers = HeaderMap::new();
        for (name, value) in &flags.header {
            if IN_THE_WAY.contains(name) {
                return Err(Failure::new(format!(
                    "the field '{name}' belongs to the connection and cannot be set"
                )));
            }
            headers.append(name, value.clone());
        }
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!(
                "courser/",
                env!("CARGO_PKG_VERSION")
            )));
        let host = match headers.remove(HOST) {
            Some(host) => host,
            None => host_of(&urls),
        };
        let whole = urls
            .iter()
            .map(|url| with_host(url, &host))
            .collect::<Result<_, _>>()?;
        let mut headers_with_host = HeaderMap::new();
        headers_with_host.insert(HOST, host);
        for (name, value) in &headers {
            headers_with_host.append(name, value.clone());
        }
        let has_body = !body.is_empty() || flags.data.is_some() || flags.body.is_some();
        let default = if has_body { Method::POST } else { Method::GET };
        Ok(Self {
            method: flags.method.clone().unwrap_or(default),
            body,
            whole,
            headers,
            origin_form: urls.iter().map(origin_form).collect(),
            headers_with_host,
            pattern,
        })
    }

    /// The request with this number.
    pub(super) fn make(&self, number: u64, spoken: Spoken) -> Request<Full<Bytes>> {
        let (urls, headers) = match spoken {
            Spoken::Http1 => (&self.origin_form, &self.headers_with_host),
            Spoken::Http2 | Spoken::Http3 => (&self.whole, &self.headers),
        };
        let index = usize::try_from(number % urls.len() as u64).unwrap_or(0);
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = match &self.pattern {
            Some(pattern) => with_path(&urls[index], pattern.path_and_query(number)),
            None => urls[index].clone(),
        };
        *request.headers_mut() = headers.clone();
        request
    }
}

fn body(flags: &Flags) -> Result<Bytes, Failure> {
    match (&flags.data, &flags.body) {
        (Some(path), _) => std::fs::read(path).map(Bytes::from).map_err(|error| {
            Failure::new(format!(
                "cannot read the body from {}: {error}",
                path.display()
            ))
        }),
        (None, Some(text)) => Ok(Bytes::from(text.clone())),
        (None, None) => Ok(Bytes::new()),
    }
}

fn host_of(urls: &[Uri]) -> HeaderValue {
    let authority = urls.first().and_then(Uri::authority);
    let text = authority.map_or("", |authority| authority.as_str());
    // What the parser of URIs lets into an authority is fit for a field.
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

/// The field host of HTTP/1.1 is `:authority` in the later versions.
fn with_host(url: &Uri, host: &HeaderValue) -> Result<Uri, Failure> {
    let mut parts = url.clone().into_parts();
    let wrong = || Failure::new(format!("the host field {host:?} is not a valid host"));
    parts.authority = Some(host.as_bytes().try_into().map_err(|_| wrong())?);
    Uri::from_parts(parts).map_err(|_| wrong())
}

fn with_path(url: &Uri, path: PathAndQuery) -> Uri {
    let mut parts = url.clone().into_parts();
    parts.path_and_query = Some(path);
    // It had one before, so it is whole or in origin form with another as well.
    Uri::from_parts(parts).unwrap_or_else(|_| url.clone())
}

fn origin_form(url: &Uri) -> Uri {
    let mut parts = url.clone().into_parts();
    (parts.scheme, parts.authority) = (None, None);
    // A path and query that were part of a URI are one by themselves.
    Uri::from_parts(parts).unwrap_or_else(|_| Uri::from_static("/"))
}

/// Fields that frame messages or steer connections (RFC 9113 §8.2.2, RFC 9114 §4.2).
const IN_THE_WAY: [HeaderName; 5] = [
    http::header::CONNECTION,
    http::header::TRANSFER_ENCODING,
    http::header::CONTENT_LENGTH,
    http::header::UPGRADE,
    http::header::TE,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(words: &[&str]) -> Result<Requests, Failure> {
        let all = [&["courser", "load"], words].concat();
        let all =
            <crate::args::Arguments as clap::Parser>::try_parse_from(all).expect("understood");
        let Some(crate::args::Command::Load(arguments)) = all.command else {
            panic!("not load");
        };
        let urls = arguments.flags.urls.iter();
        let urls = urls.map(|url| url.parse().expect("a URL")).collect();
        Requests::new(
            &arguments.flags,
            urls,
            super::super::plan::pattern(&arguments.flags)?,
        )
    }

    #[test]
    fn each_version_has_the_host_where_it_belongs() {
        let requests = requests(&["https://example.org:1/a?b", "-H", "X-A: 1"]).expect("fine");
        let first = requests.make(0, Spoken::Http1);
        assert_eq!(first.uri(), "/a?b");
        assert_eq!(first.headers()["host"], "example.org:1");
        let second = requests.make(0, Spoken::Http3);
        assert_eq!(second.uri(), "https://example.org:1/a?b");
        assert!(second.headers().get("host").is_none());
        assert_eq!(second.headers()["x-a"], "1");
    }

    #[test]
    fn host_that_was_asked_for_is_the_authority_too() {
        let requests = requests(&["https://127.0.0.1/", "-H", "host: other"]).expect("fine");
        assert_eq!(requests.make(0, Spoken::Http2).uri(), "https://other/");
        assert_eq!(requests.make(0, Spoken::Http1).headers()["host"], "other");
    }

    #[test]
    fn urls_are_asked_for_in_turn() {
        let requests = requests(&["https://x/a", "https://x/b"]).expect("fine");
        let paths: Vec<_> = (0..3)
            .map(|number| requests.make(number, Spoken::Http1).uri().to_string())
            .collect();
        assert_eq!(paths, ["/a", "/b", "/a"]);
    }

    #[test]
    fn paths_are_drawn_and_the_rest_stays() {
        let words = ["--rand-regex-url", "https://x:1/[ab]", "-H", "host: other"];
        let requests = requests(&words).expect("fine");
        let of = |number, spoken| requests.make(number, spoken).uri().to_string();
        for number in 0..20 {
            let whole = of(number, Spoken::Http3);
            assert!(
                ["https://other/a", "https://other/b"].contains(&&*whole),
                "{whole}"
            );
            assert_eq!(of(number, Spoken::Http1), whole["https://other".len()..]);
        }
    }

    #[test]
    fn a_body_makes_it_a_post() {
        let with = requests(&["https://x/", "--body", "text"]).expect("fine");
        assert_eq!(with.make(0, Spoken::Http2).method(), "POST");
        let put = requests(&["https://x/", "--body", "text", "--method", "PUT"]).expect("fine");
        assert_eq!(put.make(0, Spoken::Http2).method(), "PUT");
        let without = requests(&["https://x/"]).expect("fine");
        assert_eq!(without.make(0, Spoken::Http2).method(), "GET");
    }

    #[test]
    fn fields_of_the_connection_are_refused() {
        let error = requests(&["https://x/", "-H", "connection: close"]).expect_err("refused");
        assert!(
            error.to_string().contains("belongs to the connection"),
            "{error}"
        );
    }
}
