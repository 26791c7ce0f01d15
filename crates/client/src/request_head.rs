//! The header section of a request in the form that a connection requires.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Uri, Version};
use http_body::Body as _;

use super::error::{Error, ErrorKind};
use super::link::{Facts, Proxied};
use super::origin::Origin;
use super::request_body::RequestBody;

/// Returns the header section of a request in the form that the connection requires. `body` is its content.
pub(super) fn header_for(
    parts: &Parts,
    body: &RequestBody,
    origin: &Origin,
    facts: &Facts,
) -> Result<Parts, Error> {
    let mut head = parts.clone();
    head.version = facts.version;
    let is_http1 = facts.version <= Version::HTTP_11;
    let authority = authority(parts, origin)?;
    head.headers.remove(header::HOST);
    if is_http1 {
        head.headers = with_host(&head.headers, &authority.host);
    }
    let headers = &mut head.headers;
    if let Some(alternative) = &facts.alternative
        && let Ok(value) = HeaderValue::from_str(alternative)
    {
        headers.insert(ALT_USED, value);
    }
    clean_referer(headers);
    let is_unnamed_length = body.size_hint().exact().is_none();
    if body.is_end_stream() {
        // RFC 9110 §10.1.1: there is nothing that the server could ask for.
        headers.remove(header::EXPECT);
        // RFC 9110 §8.6: methods that define content report that there is none.
        if has_defined_content(&parts.method) && !headers.contains_key(header::CONTENT_LENGTH) {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
    } else if is_http1 && is_unnamed_length && !headers.contains_key(header::CONTENT_LENGTH) {
        if facts.version == Version::HTTP_10 {
            let text = "content of unknown length cannot be sent over HTTP/1.0: use HTTP/1.1";
            return Err(Error::new(ErrorKind::Send, text));
        }
        // hyper discards the content of GET and HEAD requests without framing.
        let chunked = HeaderValue::from_static("chunked");
        headers.entry(header::TRANSFER_ENCODING).or_insert(chunked);
    }
    if is_http1 {
        limit_te(headers);
        // RFC 9110 §7.8.
        list_in_connection(headers, &header::UPGRADE, "upgrade");
        head.uri = target(parts, authority, &facts.proxy)?;
        if let Proxied::Visible(Some(fields)) = &facts.proxy {
            for (name, value) in &**fields {
                headers.append(name, value.clone());
            }
        }
    } else {
        for name in CONNECTION_SPECIFIC {
            headers.remove(name);
        }
        keep_trailers_only(headers);
        head.uri = Uri::builder()
            .scheme(if origin.is_secure() { "https" } else { "http" })
            .authority(authority.for_uri()?)
            .path_and_query(path_of(&parts.uri))
            .build()
            .map_err(not_a_url)?;
    }
    Ok(head)
}

/// Returns header fields after a Host field, which should be the first one (RFC 9110 §7.2).
fn with_host(fields: &HeaderMap, host: &HeaderValue) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(fields.len() + SPARE_FIELDS);
    headers.insert(header::HOST, host.clone());
    for (name, value) in fields {
        headers.append(name, value.clone());
    }
    headers
}

/// Returns an error if a request cannot be sent as its caller wants it over any version of HTTP.
pub(super) fn check(parts: &Parts, body: &RequestBody) -> Result<(), Error> {
    let wrong = |text: &str| Err(Error::new(ErrorKind::Send, text));
    if parts.method == Method::TRACE {
        // RFC 9110 §9.3.8: the server returns the request to anyone who can read the response.
        if !body.is_end_stream() {
            return wrong(
                "a TRACE request must not have content: remove it, or use another method",
            );
        }
        let credential = CREDENTIALS
            .iter()
            .find(|name| parts.headers.contains_key(*name));
        if let Some(name) = credential {
            let text = format!(
                "a TRACE request must not contain credentials, because the server returns them: remove '{name}'"
            );
            return Err(Error::new(ErrorKind::Send, text));
        }
    }
    if parts.uri.path() == "*" && parts.method != Method::OPTIONS {
        return wrong("the target '*' is for the method OPTIONS only: use a path");
    }
    Ok(())
}

/// The authority of a request: that of its URL, or the Host field of the caller.
struct Authority {
    host: HeaderValue,
}

impl Authority {
    fn for_uri(&self) -> Result<&str, Error> {
        let text = self.host.to_str().map_err(|_| self.unusable())?;
        match text.parse::<http::uri::Authority>() {
            Ok(authority) if !text.contains('@') => {
                debug_assert_eq!(authority.as_str(), text, "authorities are not normalized");
                Ok(text)
            }
            _ => Err(self.unusable()),
        }
    }

    fn unusable(&self) -> Error {
        let text = format!(
            "the Host field '{}' cannot be sent over HTTP/2 and HTTP/3: use a host and an optional port",
            String::from_utf8_lossy(self.host.as_bytes())
        );
        Error::new(ErrorKind::Url, text)
    }
}

/// Returns the value of Host and `:authority`. A Host field that the caller has set replaces the authority of the
/// URL (RFC 9113 §8.3.1), and only the first one is sent.
fn authority(parts: &Parts, origin: &Origin) -> Result<Authority, Error> {
    if let Some(host) = parts.headers.get(header::HOST) {
        return Ok(Authority { host: host.clone() });
    }
    let host = HeaderValue::from_str(&authority_of(&parts.uri, origin))
        .map_err(|error| Error::new(ErrorKind::Url, format!("not a host: {error}")))?;
    Ok(Authority { host })
}

/// Returns the target of an HTTP/1.1 request (RFC 9112 §3.2).
fn target(parts: &Parts, authority: Authority, proxy: &Proxied) -> Result<Uri, Error> {
    let path = path_of(&parts.uri);
    if matches!(proxy, Proxied::Visible(_)) {
        if path == "*" {
            let text = "OPTIONS with the target '*' cannot be sent through a proxy for http URLs";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        return Uri::builder()
            .scheme("http")
            .authority(authority.for_uri()?)
            .path_and_query(path)
            .build()
            .map_err(not_a_url);
    }
    Uri::builder()
        .path_and_query(path)
        .build()
        .map_err(not_a_url)
}

fn path_of(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |path| path.as_str())
}

fn not_a_url(error: http::Error) -> Error {
    Error::new(ErrorKind::Url, format!("not a URL: {error}"))
}

/// Returns true for methods whose definition includes content (RFC 9110 §8.6).
fn has_defined_content(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// Removes the fragment and the user information from Referer, which must not contain them (RFC 9110 §10.1.3).
fn clean_referer(headers: &mut HeaderMap) {
    let Some(value) = headers.get_mut(header::REFERER) else {
        return;
    };
    let bytes = value.as_bytes();
    let has_excess = bytes.iter().any(|byte| matches!(byte, b'#' | b'@'));
    if has_excess && let Ok(clean) = HeaderValue::from_bytes(&without_excess(bytes)) {
        *value = clean;
    }
}

/// Returns a URL without its fragment and user information.
fn without_excess(url: &[u8]) -> Vec<u8> {
    let end = url.iter().position(|byte| *byte == b'#');
    let url = &url[..end.unwrap_or(url.len())];
    let Some(scheme) = url.windows(3).position(|three| three == b"://") else {
        return url.to_vec();
    };
    let (scheme, rest) = url.split_at(scheme + 3);
    let authority = rest.iter().position(|byte| matches!(byte, b'/' | b'?'));
    let (authority, path) = rest.split_at(authority.unwrap_or(rest.len()));
    let host = authority.iter().rposition(|byte| *byte == b'@');
    let host = &authority[host.map_or(0, |at| at + 1)..];
    [scheme, host, path].concat()
}

/// Removes `chunked` from TE, which it must not contain, and lists TE in Connection (RFC 9112 §7.4).
fn limit_te(headers: &mut HeaderMap) {
    if !headers.contains_key(header::TE) {
        return;
    }
    let is_allowed = |coding: &str| !name_of(coding).eq_ignore_ascii_case("chunked");
    retain_codings(headers, is_allowed);
    list_in_connection(headers, &header::TE, "TE");
}

/// Lists a field in Connection if the request has it.
fn list_in_connection(headers: &mut HeaderMap, name: &HeaderName, option: &'static str) {
    if !headers.contains_key(name) {
        return;
    }
    let lists_it = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or_default();
        let mut options = value.split(',').map(str::trim);
        options.any(|listed| listed.eq_ignore_ascii_case(option))
    };
    let mut values = headers.get_all(header::CONNECTION).into_iter();
    if !values.any(lists_it) {
        headers.append(header::CONNECTION, HeaderValue::from_static(option));
    }
}

/// Removes all members of TE but `trailers`, the only one beyond HTTP/1.1 (RFC 9113 §8.2.2, RFC 9114 §4.2).
fn keep_trailers_only(headers: &mut HeaderMap) {
    if headers.contains_key(header::TE) {
        retain_codings(headers, |coding| coding.eq_ignore_ascii_case("trailers"));
    }
}

fn retain_codings(headers: &mut HeaderMap, is_allowed: impl Fn(&str) -> bool) {
    let values = headers.get_all(header::TE).into_iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let codings = values.flat_map(|value| value.split(',')).map(str::trim);
    let kept: Vec<&str> = codings
        .filter(|coding| !coding.is_empty() && is_allowed(coding))
        .collect();
    let kept = kept.join(", ");
    headers.remove(header::TE);
    if let Ok(value) = HeaderValue::try_from(kept)
        && !value.is_empty()
    {
        headers.insert(header::TE, value);
    }
}

/// Returns the name of a coding without its parameters.
fn name_of(coding: &str) -> &str {
    coding.split(';').next().unwrap_or_default().trim()
}

/// Returns host and port as in the URL, without credentials and the default port.
fn authority_of(uri: &Uri, origin: &Origin) -> String {
    let host = uri.host().unwrap_or_else(|| origin.host());
    let default = if origin.is_secure() { 443 } else { 80 };
    if origin.port() == default {
        host.to_owned()
    } else {
        format!("{host}:{}", origin.port())
    }
}

/// Requests content codings that the client can decode, unless the request has its own preference or is for a
/// range, because part of compressed content cannot be decoded.
pub(super) fn request_codings(headers: &mut HeaderMap) {
    if !headers.contains_key(header::ACCEPT_ENCODING) && !headers.contains_key(header::RANGE) {
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(CODINGS));
    }
}

/// The content codings that this build can decode, in order of preference.
const CODINGS: &str = match (cfg!(feature = "zstd"), cfg!(feature = "brotli")) {
    (true, true) => "zstd, br, gzip, deflate",
    (true, false) => "zstd, gzip, deflate",
    (false, true) => "br, gzip, deflate",
    (false, false) => "gzip, deflate",
};
/// Fields of requests that authenticate the user.
const CREDENTIALS: [HeaderName; 3] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::PROXY_AUTHORIZATION,
];
/// Room for the fields that are added to those of the caller.
const SPARE_FIELDS: usize = 6;
const ALT_USED: HeaderName = HeaderName::from_static("alt-used");
/// Connection-specific fields, which are malformed beyond HTTP/1.1 (RFC 9113 §8.2.2, RFC 9114 §4.2).
const CONNECTION_SPECIFIC: [HeaderName; 5] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

#[cfg(test)]
mod tests;
