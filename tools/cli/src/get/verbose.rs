//! Writes the output of --verbose, --trace, --include and --dump-header.

use std::io::Write as _;
use std::sync::Arc;

use courser::client::{EarlyRequest, Outcome, Timing, Transport};
use courser_measure::printable;
use http::response::Parts;
use http::{HeaderMap, StatusCode, Version};

use super::exit::{Failed, version_number};
use super::message::{Message, is_credential};
use super::plan::Verbosity;
use super::trace::{Trace, TracePlan};

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

/// The destination of details about transfers.
#[derive(Clone, Debug)]
pub(crate) enum Details {
    Hidden,
    /// Standard error, with --verbose.
    Shown,
    /// The file of --trace or --trace-ascii.
    Traced(Arc<Trace>),
}

impl Details {
    /// Opens the file of a trace, which replaces the output of --verbose.
    pub(crate) fn open(trace: Option<&TracePlan>, verbosity: Verbosity) -> Result<Self, Failed> {
        Ok(match trace {
            Some(plan) => Self::Traced(Arc::new(Trace::open(plan)?)),
            None if verbosity.shows_details => Self::Shown,
            None => Self::Hidden,
        })
    }

    pub(crate) const fn are_hidden(&self) -> bool {
        matches!(self, Self::Hidden)
    }

    /// Writes a note, with a line that begins with `*` or `== Info:`.
    pub(crate) fn note(&self, text: &str) {
        match self {
            Self::Hidden => {}
            Self::Shown => print("*", [text].into_iter()),
            Self::Traced(trace) => trace.info(&printable(text)),
        }
    }

    /// Writes the connection attempts and the connection that is used.
    pub(crate) fn connection(&self, timing: &Timing, offers_ech: bool) {
        if !self.are_hidden() {
            let lines = connection_lines(timing, offers_ech);
            lines.iter().for_each(|line| self.note(line));
        }
    }

    /// Writes the header of a request, with lines that begin with `>`. The version is unknown until the response.
    pub(crate) fn request(&self, message: &Message, version: Option<Version>) {
        match self {
            Self::Hidden => {}
            Self::Shown => print(
                ">",
                request_lines(message, version).iter().map(String::as_str),
            ),
            Self::Traced(trace) => {
                let text = request_lines(message, version).join("\r\n") + "\r\n";
                trace.dump("=> Send header", text.as_bytes());
            }
        }
    }

    /// Writes the header of a response, with lines that begin with `<`.
    pub(crate) fn response(&self, response: &Parts) {
        let lines = || {
            let mut lines = vec![status_line(response.version, response.status)];
            lines.extend(fields(&response.headers));
            lines.push(String::new());
            lines
        };
        match self {
            Self::Hidden => {}
            Self::Shown => print("<", lines().iter().map(String::as_str)),
            Self::Traced(trace) => {
                for line in lines() {
                    trace.dump("<= Recv header", (line + "\r\n").as_bytes());
                }
            }
        }
    }

    /// Writes content that is sent, to a trace.
    pub(crate) fn sent(&self, data: &[u8]) {
        if let Self::Traced(trace) = self {
            trace.dump("=> Send data", data);
        }
    }

    /// Writes content that was received, to a trace.
    pub(crate) fn received(&self, data: &[u8]) {
        if let Self::Traced(trace) = self {
            trace.dump("<= Recv data", data);
        }
    }
}

/// Returns lines about the connection attempts and the connection that is used.
fn connection_lines(timing: &Timing, offers_ech: bool) -> Vec<String> {
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
    lines
}

/// Returns the header of a request, with an empty line at its end.
fn request_lines(message: &Message, version: Option<Version>) -> Vec<String> {
    let path = message.uri.path_and_query();
    let path = path.map_or("/", |path| path.as_str());
    let version = version.map(|version| format!(" HTTP/{}", version_number(Some(version))));
    let authority = message.uri.authority();
    let mut lines = vec![
        format!("{} {path}{}", message.method, version.unwrap_or_default()),
        format!(
            "host: {}",
            authority.map_or("", |authority| authority.as_str())
        ),
    ];
    lines.extend(fields(&message.headers));
    lines.push(String::new());
    lines
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
