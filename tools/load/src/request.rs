//! Prepares requests, which are copied each time one is sent.

use bytes::Bytes;
use courser_measure::Failure;
use http::header::{CONNECTION, HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;

use crate::pattern::Pattern;

/// The version of HTTP of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HttpVersion {
    /// HTTP/1.1 (RFC 9112).
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3 (RFC 9114).
    Http3,
}

impl HttpVersion {
    /// Returns the name of the version in ALPN.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
            Self::Http3 => "h3",
        }
    }
}

/// The parts that all requests of a run share.
#[derive(Clone, Debug, Default)]
pub struct RequestParts {
    /// The method; by default GET, or POST with a body.
    pub method: Option<Method>,
    /// Field lines, in order. A host field replaces the authority of the URLs.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The content; `None` without a body.
    pub body: Option<Bytes>,
}

/// The requests of a run, which are sent in rotation.
#[derive(Debug)]
pub struct Requests {
    method: Method,
    body: Bytes,
    /// URLs with an authority, for HTTP/2 and HTTP/3.
    whole: Vec<Uri>,
    headers: HeaderMap,
    /// URLs without an authority, for HTTP/1.1, whose host field names the host.
    origin_form: Vec<Uri>,
    headers_with_host: HeaderMap,
    /// The pattern from which paths are generated, if there is one.
    pattern: Option<Pattern>,
}

impl Requests {
    /// Returns true if the requests ask HTTP/1.1 servers to close the connection.
    pub fn closes(&self) -> bool {
        self.headers_with_host.contains_key(CONNECTION)
    }

    /// Returns the method of all requests.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Prepares requests for `urls`, which must contain at least one URL and all have the same server. With a
    /// pattern, paths are generated from it, and the URLs only name the server.
    ///
    /// # Errors
    /// Returns an error if a field is specific to the connection, or if the host field is not a valid host.
    pub fn new(
        urls: &[Uri],
        parts: RequestParts,
        pattern: Option<Pattern>,
    ) -> Result<Self, Failure> {
        let mut headers = HeaderMap::new();
        let mut closes = false;
        for (name, value) in parts.headers {
            if is_close(&name, &value) {
                closes = true;
                continue;
            }
            if CONNECTION_FIELDS.contains(&name) {
                return Err(Failure::new(format!(
                    "the field '{name}' belongs to the connection and cannot be set"
                )));
            }
            headers.append(name, value);
        }
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!(
                "courser/",
                env!("CARGO_PKG_VERSION")
            )));
        let host = match headers.remove(HOST) {
            Some(host) => host,
            None => host_of(urls),
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
        if closes {
            headers_with_host.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let default = match parts.body {
            Some(_) => Method::POST,
            None => Method::GET,
        };
        Ok(Self {
            method: parts.method.unwrap_or(default),
            body: parts.body.unwrap_or_default(),
            whole,
            headers,
            origin_form: urls.iter().map(origin_form).collect(),
            headers_with_host,
            pattern,
        })
    }

    /// Returns the request with this number.
    pub(crate) fn get(&self, number: u64, version: HttpVersion) -> Request<Full<Bytes>> {
        let (urls, headers) = match version {
            HttpVersion::Http1 => (&self.origin_form, &self.headers_with_host),
            HttpVersion::Http2 | HttpVersion::Http3 => (&self.whole, &self.headers),
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

/// Returns true for `connection: close`, which is sent over HTTP/1.1 only.
fn is_close(name: &HeaderName, value: &HeaderValue) -> bool {
    *name == CONNECTION && value.as_bytes().eq_ignore_ascii_case(b"close")
}

fn host_of(urls: &[Uri]) -> HeaderValue {
    let authority = urls.first().and_then(Uri::authority);
    let text = authority.map_or("", |authority| authority.as_str());
    // Every authority that the parser of URIs accepts is a valid field value.
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

/// Sets the authority of a URL to the value of a host field, which `:authority` replaces since HTTP/2.
fn with_host(url: &Uri, host: &HeaderValue) -> Result<Uri, Failure> {
    let mut parts = url.clone().into_parts();
    let wrong = || Failure::new(format!("the host field {host:?} is not a valid host"));
    parts.authority = Some(host.as_bytes().try_into().map_err(|_| wrong())?);
    Uri::from_parts(parts).map_err(|_| wrong())
}

fn with_path(url: &Uri, path: PathAndQuery) -> Uri {
    let mut parts = url.clone().into_parts();
    parts.path_and_query = Some(path);
    // The URL had a path, so it is valid with another one.
    Uri::from_parts(parts).unwrap_or_else(|_| url.clone())
}

fn origin_form(url: &Uri) -> Uri {
    let mut parts = url.clone().into_parts();
    (parts.scheme, parts.authority) = (None, None);
    // The path and query of a URI are a valid URI.
    Uri::from_parts(parts).unwrap_or_else(|_| Uri::from_static("/"))
}

/// Fields that delimit messages or control connections (RFC 9113 §8.2.2, RFC 9114 §4.2).
const CONNECTION_FIELDS: [HeaderName; 5] = [
    CONNECTION,
    http::header::TRANSFER_ENCODING,
    http::header::CONTENT_LENGTH,
    http::header::UPGRADE,
    http::header::TE,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(urls: &[&str], headers: &[(&str, &str)]) -> Result<Requests, Failure> {
        let read = |(name, value): &(&str, &str)| {
            let name: HeaderName = name.parse().expect("a name");
            (name, value.parse().expect("a value"))
        };
        let parts = RequestParts {
            headers: headers.iter().map(read).collect(),
            ..RequestParts::default()
        };
        let urls: Vec<Uri> = urls.iter().map(|url| url.parse().expect("a URL")).collect();
        Requests::new(&urls, parts, None)
    }

    #[test]
    fn host_is_a_field_or_the_authority_by_version() {
        let requests = requests(&["https://example.org:1/a?b"], &[("x-a", "1")]).expect("fine");
        let first = requests.get(0, HttpVersion::Http1);
        assert_eq!(first.uri(), "/a?b");
        assert_eq!(first.headers()["host"], "example.org:1");
        let second = requests.get(0, HttpVersion::Http3);
        assert_eq!(second.uri(), "https://example.org:1/a?b");
        assert!(second.headers().get("host").is_none());
        assert_eq!(second.headers()["x-a"], "1");
    }

    #[test]
    fn host_field_replaces_the_authority() {
        let requests = requests(&["https://127.0.0.1/"], &[("host", "other")]).expect("fine");
        assert_eq!(requests.get(0, HttpVersion::Http2).uri(), "https://other/");
        assert_eq!(
            requests.get(0, HttpVersion::Http1).headers()["host"],
            "other"
        );
    }

    #[test]
    fn urls_are_requested_in_turn() {
        let requests = requests(&["https://x/a", "https://x/b"], &[]).expect("fine");
        let paths: Vec<_> = (0..3)
            .map(|number| requests.get(number, HttpVersion::Http1).uri().to_string())
            .collect();
        assert_eq!(paths, ["/a", "/b", "/a"]);
    }

    #[test]
    fn only_paths_are_generated() {
        let pattern = Pattern::read("https://x:1/[ab]", 4).expect("fine");
        let urls = [pattern.origin().parse().expect("a URL")];
        let parts = RequestParts {
            headers: vec![(HOST, HeaderValue::from_static("other"))],
            ..RequestParts::default()
        };
        let requests = Requests::new(&urls, parts, Some(pattern)).expect("fine");
        let of = |number, version| requests.get(number, version).uri().to_string();
        for number in 0..20 {
            let whole = of(number, HttpVersion::Http3);
            assert!(
                ["https://other/a", "https://other/b"].contains(&&*whole),
                "{whole}"
            );
            assert_eq!(
                of(number, HttpVersion::Http1),
                whole["https://other".len()..]
            );
        }
    }

    #[test]
    fn requests_with_a_body_use_post_by_default() {
        let method = |method: Option<Method>, body: Option<&'static str>| {
            let parts = RequestParts {
                method,
                body: body.map(Bytes::from),
                ..RequestParts::default()
            };
            let url = Uri::from_static("https://x/");
            let requests = Requests::new(&[url], parts, None).expect("fine");
            requests.get(0, HttpVersion::Http2).method().clone()
        };
        assert_eq!(method(None, Some("text")), Method::POST);
        assert_eq!(method(None, Some("")), Method::POST);
        assert_eq!(method(Some(Method::PUT), Some("text")), Method::PUT);
        assert_eq!(method(None, None), Method::GET);
    }

    #[test]
    fn connection_close_is_sent_over_http1_only() {
        let requests = requests(&["https://x/"], &[("connection", "Close")]).expect("allowed");
        assert!(requests.closes());
        let has = |version| requests.get(0, version).headers().contains_key(CONNECTION);
        assert!(has(HttpVersion::Http1) && !has(HttpVersion::Http2) && !has(HttpVersion::Http3));
    }

    #[test]
    fn fields_of_the_connection_are_refused() {
        let error = requests(&["https://x/"], &[("connection", "upgrade")]).expect_err("refused");
        assert!(
            error.to_string().contains("belongs to the connection"),
            "{error}"
        );
    }
}
