//! The formats of access log lines. Each line has at most [`MAX_LINE`] bytes.

use std::borrow::Cow;
use std::fmt::Write as _;

use courser::server::Cause;
use courser_base::ScopedIp;
use http::{HeaderValue, Version};
use serde_json::json;

use crate::exchange::{Details, Exchange};
use crate::proxy::UpstreamFacts;

/// Returns a line in Common Log Format: `1.2.3.4 - - [21/Nov/2026:23:05:18 +0000] "GET / HTTP/3.0" 200
/// 5`.
pub(super) fn common(exchange: &Exchange, details: &Details) -> String {
    let mut line = String::with_capacity(160);
    match details.client {
        Some(client) => drop(write!(line, "{}", ScopedIp::of(client))),
        None => line.push('-'),
    }
    let time = courser_units::common_log(details.at);
    let _ = write!(line, " - - [{time}] \"");
    match details.first_line.as_deref() {
        Some([]) => line.push('-'),
        Some(first) => escape(&mut line, first, MAX_OF_TARGET),
        None => {
            let method = exchange.method.as_str().as_bytes();
            escape(&mut line, method, MAX_OF_METHOD);
            line.push(' ');
            escape(&mut line, target(details).as_bytes(), MAX_OF_TARGET);
            let _ = write!(line, " {}", protocol(details.version));
        }
    }
    let status = exchange.status.as_u16();
    let _ = write!(line, "\" {status} {}", exchange.bytes);
    line
}

/// Returns a line in Common Log Format with Referer and User-Agent. The cause of a response that the server made
/// itself, or that was aborted, follows; other lines have exactly the format that programs know.
pub(super) fn combined(exchange: &Exchange, details: &Details) -> String {
    let mut line = common(exchange, details);
    quoted(&mut line, details.referer.as_ref());
    quoted(&mut line, details.user_agent.as_ref());
    if let Some(cause) = exchange.cause {
        line.push(' ');
        line.push_str(cause.name());
    }
    line
}

fn quoted(line: &mut String, value: Option<&HeaderValue>) {
    line.push_str(" \"");
    match value {
        Some(value) => escape(line, value.as_bytes(), MAX_OF_FIELD),
        None => line.push('-'),
    }
    line.push('"');
}

/// Appends bytes that a client sent, escaped so that they end neither the line nor the field. The escaped text
/// has at most `most` bytes.
pub(crate) fn escape(line: &mut String, bytes: &[u8], most: usize) {
    let end = line.len() + most;
    let mut fits = line.len();
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => {
                line.push('\\');
                line.push(char::from(byte));
            }
            b' '..=b'~' => line.push(char::from(byte)),
            _ => drop(write!(line, "\\x{byte:02x}")),
        }
        if line.len() > end {
            line.truncate(fits);
            line.push_str(CUT);
            return;
        }
        if line.len() + CUT.len() <= end {
            fits = line.len();
        }
    }
}

/// Truncates text so that it takes at most `most` bytes in a JSON string.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    let (mut len, mut fits) = (0, 0);
    for (at, c) in text.char_indices() {
        if len + CUT.len() <= most {
            fits = at;
        }
        len += match c {
            '"' | '\\' => 2,
            c if c.is_control() => 6,
            c => c.len_utf8(),
        };
        if len > most {
            return format!("{}{CUT}", &text[..fits]).into();
        }
    }
    text.into()
}

pub(super) fn as_json(exchange: &Exchange, details: &Details) -> String {
    let text = |value: Option<&HeaderValue>| {
        let value = String::from_utf8_lossy(value?.as_bytes()).into_owned();
        Some(cut(&value, MAX_OF_FIELD).into_owned())
    };
    let peer = details.peer.as_ref();
    let tls = peer.map(courser::server::Peer::tls);
    let upstream = exchange.upstream;
    let seconds = |time: Option<std::time::Duration>| time.map(|time| time.as_secs_f64());
    let has_upstream = upstream != UpstreamFacts::default();
    // The authority of the target takes precedence over the Host field, as in the proxy.
    let host = details.uri.authority();
    let host = host.map(|host| cut(host.as_str(), MAX_OF_FIELD).into_owned());
    let host = host.or_else(|| text(details.host.as_ref()));
    let is_valid = details.first_line.is_none();
    let mut object = json!({
        "time": courser_units::rfc3339_millis(details.at),
        "request_id": details.request_id.map(|id| id.to_string()),
        "client": details.client.map(|client| client.to_string()),
        "connection": peer.map(courser::server::Peer::connection_id),
        "protocol": protocol(details.version),
        "tls_version": tls.and_then(|tls| tls.version),
        "server_name": tls.and_then(|tls| Some(cut(tls.server_name.as_deref()?, MAX_OF_NAME))),
        "method": is_valid.then(|| cut(exchange.method.as_str(), MAX_OF_METHOD)),
        "host": host,
        "uri": is_valid.then(|| cut(target(details), MAX_OF_TARGET)),
        "status": exchange.status.as_u16(),
        "bytes": exchange.bytes,
        "seconds": exchange.took.as_secs_f64(),
        "complete": exchange.is_complete,
        "cause": exchange.cause.map(Cause::name),
        "upstream": has_upstream.then(|| json!({
            "address": upstream.address.map(|address| address.to_string()),
            "status": upstream.status.map(|status| status.as_u16()),
            "connect_seconds": seconds(upstream.connecting),
            "response_seconds": seconds(upstream.responding),
        })),
        "referer": text(details.referer.as_ref()),
        "user_agent": text(details.user_agent.as_ref()),
    });
    if let Some(first) = &details.first_line {
        let first = String::from_utf8_lossy(first);
        object["first_line"] = cut(&first, MAX_OF_FIELD).into();
    }
    object.to_string()
}

fn target(details: &Details) -> &str {
    let path = details.uri.path_and_query();
    path.map_or("*", http::uri::PathAndQuery::as_str)
}

pub(crate) fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

/// Largest size of a line with its line break (limit K106). The longest referrer, agent, host, target and method
/// leave 1000 bytes for the other parts.
pub(crate) const MAX_LINE: usize = 4608;
const MAX_OF_TARGET: usize = 1600;
const MAX_OF_FIELD: usize = 600;
const MAX_OF_METHOD: usize = 64;
/// A host name has at most 253 bytes.
const MAX_OF_NAME: usize = 255;
/// Marks a truncated field.
const CUT: &str = "...";

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::request_id::RequestId;

    #[test]
    fn client_bytes_do_not_end_a_field() {
        let mut line = String::new();
        escape(&mut line, b"a\" 200 1\\\r\nfake \x1b[31m\xff", 100);
        assert_eq!(line, "a\\\" 200 1\\\\\\x0d\\x0afake \\x1b[31m\\xff");
    }

    #[test]
    fn fields_are_cut_between_characters() {
        for (text, most, expected) in [
            ("abcdefgh", 8, "abcdefgh"),
            ("abcdefghi", 8, "abcde..."),
            ("abcd\"efghi", 8, "abcd..."),
            ("\"\"\"\"", 8, "\\\"\\\"\\\"\\\""),
            ("\"\"\"\"\"", 8, "\\\"\\\"..."),
        ] {
            let mut line = String::new();
            escape(&mut line, text.as_bytes(), most);
            assert_eq!(line, expected, "{text}");
            let quoted = json!(cut(text, most)).to_string();
            assert_eq!(quoted, format!("\"{expected}\""), "{text}");
        }
        assert_eq!(cut("ééééé", 8), "éé...");
    }

    #[test]
    fn lines_are_never_longer_than_the_limit() {
        for byte in [b'a', b'"', b'\t', 0xff] {
            let value = HeaderValue::from_bytes(&vec![byte; 60_000]).ok();
            let uri = format!("https://{}/{}", "h".repeat(9000), "%".repeat(9000));
            let details = Details {
                peer: None,
                client: Some(([0xffff; 8], 65_535).into()),
                uri: uri.parse().expect("a URI"),
                version: Version::HTTP_3,
                host: value.clone(),
                referer: value.clone(),
                user_agent: value,
                at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
                request_id: Some(RequestId::next()),
                first_line: None,
            };
            let exchange = Exchange {
                method: http::Method::from_bytes(&[b'M'; 5000]).expect("a token"),
                status: http::StatusCode::OK,
                bytes: u64::MAX,
                took: Duration::MAX,
                is_complete: true,
                cause: Cause::ALL.iter().max_by_key(|it| it.name().len()).copied(),
                upstream: UpstreamFacts {
                    address: Some(([0xffff; 8], 65_535).into()),
                    connecting: Some(Duration::MAX),
                    responding: Some(Duration::MAX),
                    status: Some(http::StatusCode::OK),
                },
            };
            for first_line in [None, Some(vec![byte; 60_000].into())] {
                let details = Details {
                    first_line,
                    ..details.clone()
                };
                for line in [
                    common(&exchange, &details),
                    combined(&exchange, &details),
                    as_json(&exchange, &details),
                ] {
                    assert!(line.len() < MAX_LINE, "{} bytes: {line}", line.len());
                    assert!(line.contains(CUT), "{line}");
                }
            }
        }
    }
}
