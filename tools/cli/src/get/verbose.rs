//! Prints the output of --verbose, --include and --dump-header.

use std::io::Write as _;

use courser::client::{EarlyRequest, Outcome, Timing, Transport};
use courser_measure::printable;
use http::response::Parts;
use http::{HeaderMap, StatusCode, Version};

use super::exit::version_number;
use super::message::{Message, is_credential};

/// Returns a response header as text: `HTTP/3 200`, followed by the fields.
pub(crate) fn head(response: &Parts) -> String {
    let mut text = format!("{} \r\n", status_line(response.version, response.status));
    if response.version <= Version::HTTP_11 {
        let given = response.extensions.get::<hyper::ext::ReasonPhrase>();
        let reason = match given {
            Some(given) => String::from_utf8_lossy(given.as_bytes()),
            None => response
                .status
                .canonical_reason()
                .unwrap_or_default()
                .into(),
        };
        text = format!(
            "{} {reason}\r\n",
            status_line(response.version, response.status)
        );
    }
    for (name, value) in &response.headers {
        text.push_str(name.as_str());
        text.push_str(": ");
        text.push_str(&String::from_utf8_lossy(value.as_bytes()));
        text.push_str("\r\n");
    }
    text + "\r\n"
}

fn status_line(version: Version, status: StatusCode) -> String {
    format!("HTTP/{} {}", version_number(Some(version)), status.as_u16())
}

/// Prints the connection attempts and the connection that is used.
pub(crate) fn connection(timing: &Timing, offers_ech: bool) {
    let mut lines = Vec::new();
    for attempt in &timing.attempts {
        let transport = match attempt.transport {
            Transport::Quic => "udp",
            _ => "tcp",
        };
        let what = match &attempt.outcome {
            Outcome::Won => "connected".to_owned(),
            Outcome::Failed(why) => format!("failed: {why}"),
            _ => "abandoned".to_owned(),
        };
        let after = attempt.ended.unwrap_or_else(|| timing.began.elapsed());
        lines.push(format!(
            "Trying {transport} {} at {:.1} ms: {what} at {:.1} ms",
            attempt.address,
            milliseconds(attempt.began),
            milliseconds(after)
        ));
    }
    if let (Some(protocol), Some(remote)) = (timing.protocol, timing.remote) {
        let how = match (timing.is_reused, timing.is_resumed) {
            (true, _) => "an existing connection",
            (false, true) => "a new connection, TLS session resumed",
            (false, false) => "a new connection",
        };
        let through = if timing.is_proxied { " (proxy)" } else { "" };
        let version = version_number(Some(protocol));
        let quic = timing.quic.as_ref();
        let quic = quic.map_or(String::new(), |quic| {
            format!(", QUIC version {}", quic.version)
        });
        lines.push(format!(
            "Using HTTP/{version} with {remote}{through}, on {how}{quic}"
        ));
    }
    lines.extend(crate::transfer::tls_notes(timing, offers_ech));
    match timing.early_data {
        Some(EarlyRequest::Accepted) => {
            lines.push("Sent in early data (0-RTT), which the server accepted".to_owned());
        }
        Some(EarlyRequest::Rejected) => {
            lines.push("The server rejected the early data (0-RTT)".to_owned());
        }
        Some(EarlyRequest::TooEarly) => {
            lines.push("The server answered the early request with 425 Too Early".to_owned());
        }
        _ => {}
    }
    if timing.retries > 0 {
        lines.push(format!(
            "Sent again {} times: the server had not processed it",
            timing.retries
        ));
    }
    print("*", lines.iter().map(String::as_str));
}

/// Prints the header of a request, with lines that begin with `>`.
pub(crate) fn request(message: &Message, version: Option<Version>) {
    let path = message
        .uri
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let mut lines = vec![
        format!("{} {path} HTTP/{}", message.method, version_number(version)),
        format!(
            "host: {}",
            message
                .uri
                .authority()
                .map_or("", |authority| authority.as_str())
        ),
    ];
    lines.extend(fields(&message.headers));
    lines.push(String::new());
    print(">", lines.iter().map(String::as_str));
}

/// Prints the header of a response, with lines that begin with `<`.
pub(crate) fn response(response: &Parts) {
    let mut lines = vec![status_line(response.version, response.status)];
    lines.extend(fields(&response.headers));
    lines.push(String::new());
    print("<", lines.iter().map(String::as_str));
}

/// Prints a note, with a line that begins with `*`.
pub(crate) fn note(text: &str) {
    print("*", [text].into_iter());
}

fn fields(headers: &HeaderMap) -> impl Iterator<Item = String> {
    headers.iter().map(|(name, value)| {
        let value = if value.is_sensitive() || is_credential(name) {
            // Logs are often shared, and servers do not mark their cookies as sensitive.
            "[redacted]".into()
        } else {
            String::from_utf8_lossy(value.as_bytes())
        };
        format!("{name}: {value}")
    })
}

fn print<'a>(mark: &str, lines: impl Iterator<Item = &'a str>) {
    let mut text = String::new();
    for line in lines {
        text.push_str(mark);
        text.push(' ');
        // Text of a server must not control the terminal.
        text.push_str(&printable(line));
        text.push('\n');
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}

pub(crate) fn milliseconds(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
