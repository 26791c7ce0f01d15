//! The header section of a request in the form that a connection requires.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Uri, Version};

use super::error::{Error, ErrorKind};
use super::link::{Facts, Proxied};
use super::origin::Origin;

/// Returns the header section of a request in the form that the connection requires.
pub(super) fn header_for(parts: &Parts, origin: &Origin, facts: &Facts) -> Result<Parts, Error> {
    let mut parts = parts.clone();
    parts.version = facts.version;
    if let Some(alternative) = &facts.alternative
        && let Ok(value) = HeaderValue::from_str(alternative)
    {
        parts.headers.insert(ALT_USED, value);
    }
    let authority = authority_of(&parts.uri, origin);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let wrong = |error: http::Error| Error::new(ErrorKind::Url, format!("not a URL: {error}"));
    if facts.version == Version::HTTP_11 {
        if !parts.headers.contains_key(header::HOST) {
            let host = HeaderValue::from_str(&authority)
                .map_err(|error| Error::new(ErrorKind::Url, format!("not a host: {error}")))?;
            parts.headers.insert(header::HOST, host);
        }
        parts.uri = match &facts.proxy {
            Proxied::Visible(authorization) => {
                if let Some(authorization) = authorization {
                    let name = header::PROXY_AUTHORIZATION;
                    parts.headers.insert(name, authorization.clone());
                }
                Uri::builder()
                    .scheme("http")
                    .authority(authority)
                    .path_and_query(path)
                    .build()
                    .map_err(wrong)?
            }
            _ => Uri::builder().path_and_query(path).build().map_err(wrong)?,
        };
        return Ok(parts);
    }
    for name in CONNECTION_SPECIFIC {
        parts.headers.remove(name);
    }
    // A `host` field that the user has set replaces the authority (RFC 9113 §8.3.1).
    let host = parts.headers.remove(header::HOST);
    let host = host.and_then(|host| host.to_str().map(str::to_owned).ok());
    parts.uri = Uri::builder()
        .scheme("https")
        .authority(host.unwrap_or(authority))
        .path_and_query(path)
        .build()
        .map_err(wrong)?;
    Ok(parts)
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
const ALT_USED: HeaderName = HeaderName::from_static("alt-used");
/// Connection-specific fields, which are malformed beyond HTTP/1.1 (RFC 9113 §8.2.2, RFC 9114 §4.2).
const CONNECTION_SPECIFIC: [HeaderName; 5] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
