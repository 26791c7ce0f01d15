//! Errors of proxies in the field Proxy-Status (RFC 9209).

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::refusal::Refusal;

/// The reason why a proxy does not reach a target (RFC 9209 §2.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ProxyError {
    /// The name was not resolved in time.
    DnsTimeout,
    /// The name was not resolved.
    DnsError,
    /// The policy of the proxy does not allow the address.
    DestinationIpProhibited,
    /// The system has no route to the address.
    DestinationIpUnroutable,
    /// The target does not receive packets, by an ICMP message, or refuses connections.
    ConnectionRefused,
    /// The target does not answer in time.
    ConnectionTimeout,
    /// The target has closed its connection before a response.
    ConnectionTerminated,
    /// The response of the target violates HTTP.
    HttpProtocolError,
    /// The proxy has no room for another tunnel.
    ConnectionLimitReached,
    /// The client may not use the proxy, or has too many tunnels.
    HttpRequestDenied,
    /// The target is the proxy itself.
    ProxyLoopDetected,
    /// The proxy has failed.
    ProxyInternalError,
}

impl ProxyError {
    /// Returns the value of the parameter `error`.
    pub const fn token(self) -> &'static str {
        match self {
            Self::DnsTimeout => "dns_timeout",
            Self::DnsError => "dns_error",
            Self::DestinationIpProhibited => "destination_ip_prohibited",
            Self::DestinationIpUnroutable => "destination_ip_unroutable",
            Self::ConnectionRefused => "connection_refused",
            Self::ConnectionTimeout => "connection_timeout",
            Self::ConnectionTerminated => "connection_terminated",
            Self::HttpProtocolError => "http_protocol_error",
            Self::ConnectionLimitReached => "connection_limit_reached",
            Self::HttpRequestDenied => "http_request_denied",
            Self::ProxyLoopDetected => "proxy_loop_detected",
            Self::ProxyInternalError => "proxy_internal_error",
        }
    }

    /// Returns the status of a response with this error.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::DnsTimeout | Self::ConnectionTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::DnsError
            | Self::DestinationIpUnroutable
            | Self::ConnectionRefused
            | Self::ConnectionTerminated
            | Self::HttpProtocolError
            | Self::ProxyLoopDetected => StatusCode::BAD_GATEWAY,
            Self::DestinationIpProhibited | Self::HttpRequestDenied => StatusCode::FORBIDDEN,
            Self::ConnectionLimitReached => StatusCode::SERVICE_UNAVAILABLE,
            Self::ProxyInternalError => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the refusal of a proxy with this name, for example `courser`. The name is escaped as a string.
    ///
    /// ```
    /// use courser_masque::ProxyError;
    /// let refusal = ProxyError::DnsError.refusal("proxy.example", "no such name");
    /// assert_eq!(refusal.status, 502);
    /// assert_eq!(refusal.headers["proxy-status"], "\"proxy.example\"; error=dns_error");
    /// ```
    pub fn refusal(self, proxy: &str, reason: &str) -> Refusal {
        let mut refusal = Refusal::new(self.status(), reason);
        let text = format!("{}; error={}", quoted(proxy), self.token());
        if let Ok(value) = HeaderValue::try_from(text) {
            refusal.headers.insert(PROXY_STATUS, value);
        }
        refusal
    }
}

/// An error that a proxy has reported in the field Proxy-Status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReportedError {
    /// The parameter `error`, such as `dns_error`.
    pub error: String,
    /// The parameter `details`.
    pub details: Option<String>,
}

impl ReportedError {
    /// Returns the error of the last proxy in the field, the one closest to the client.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get_all(PROXY_STATUS).iter().next_back()?;
        let text = value.to_str().ok().filter(|text| text.len() <= LONGEST)?;
        let member = split(text, b',').next_back()?;
        let parameter = |wanted: &str| {
            let mut parameters = split(member, b';').skip(1);
            parameters.find_map(|parameter| {
                let (name, value) = parameter.split_once('=')?;
                (name.trim() == wanted).then(|| unquoted(value.trim()))
            })
        };
        Some(Self {
            error: parameter("error")?,
            details: parameter("details"),
        })
    }
}

impl fmt::Display for ReportedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.details {
            Some(details) => write!(f, "{} ({details})", self.error),
            None => f.write_str(&self.error),
        }
    }
}

/// Splits a structured field at a character outside of strings.
fn split(text: &str, at: u8) -> impl DoubleEndedIterator<Item = &str> {
    let mut parts = Vec::new();
    let (mut begin, mut is_string, mut is_escaped) = (0, false, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            byte if byte == at && !is_string => {
                parts.push(&text[begin..index]);
                begin = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts.into_iter()
}

/// Returns a string of structured fields (RFC 9651 §3.3.3). Other characters than those of ASCII become `?`.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            ' '..='~' => out.push(character),
            _ => out.push('?'),
        }
    }
    out.push('"');
    out
}

/// Returns the text of a string or token.
fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|it| it.strip_suffix('"')) else {
        return value.to_owned();
    };
    let mut is_escaped = false;
    let is_kept = |character: &char| {
        is_escaped = *character == '\\' && !is_escaped;
        !is_escaped
    };
    inner.chars().filter(is_kept).collect()
}

const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// Longest field that is read, in bytes.
const LONGEST: usize = 1024;

#[cfg(test)]
mod tests;
