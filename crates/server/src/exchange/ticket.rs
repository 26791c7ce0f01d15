//! The record of one request that the service has.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, Request, Response, StatusCode};

use crate::events::Event;
use crate::requests::{CLIENT_CLOSED, EndedRequest, method_index};
use crate::tally::Record;

/// A request that the service has received. It is counted when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    record: Arc<Record>,
    line: RequestLine,
    /// `None` if requests are not counted.
    counted: Option<Counted>,
}

/// The values that are counted.
#[derive(Debug)]
struct Counted {
    began: Instant,
    /// The index of the method.
    method: u8,
    /// False for responses whose content is not sent, and for tunnels.
    has_content: bool,
    is_complete: bool,
    status: StatusCode,
    bytes: u64,
    /// The length of the content, or the largest number if it is unknown.
    length: u64,
}

impl Ticket {
    #[inline]
    pub(crate) fn new<B>(record: &Arc<Record>, request: &Request<B>) -> Self {
        let is_counted = record.handlers().counts.is_some();
        Self {
            record: record.clone(),
            line: RequestLine::new(request),
            counted: is_counted.then(|| Counted::new(request.method())),
        }
    }

    #[inline]
    pub(crate) fn on_response<B: http_body::Body>(&mut self, response: &Response<B>) {
        if let Some(counted) = &mut self.counted {
            counted.on_response(response);
        }
    }

    /// Records that the service has returned an error, so that there is no response.
    pub(crate) fn on_failed(&mut self) {
        if let Some(counted) = &mut self.counted {
            counted.status = StatusCode::INTERNAL_SERVER_ERROR;
        }
    }

    #[inline]
    pub(crate) fn on_frame(&mut self, bytes: usize, is_end: bool) {
        if let Some(counted) = &mut self.counted {
            counted.bytes += bytes as u64;
            counted.is_complete |= is_end || counted.bytes == counted.length;
        }
    }

    #[inline]
    pub(crate) fn on_end(&mut self) {
        if let Some(counted) = &mut self.counted {
            counted.is_complete = true;
        }
    }

    /// Records and reports a panic of the service, or of the content of its response.
    #[cold]
    pub(crate) fn on_panic(&mut self, panic: &str, is_answered: bool) {
        if let Some(counted) = &mut self.counted {
            if is_answered {
                counted.status = StatusCode::INTERNAL_SERVER_ERROR;
            }
            counted.is_complete = is_answered;
        }
        let handlers = self.record.handlers();
        handlers.panics.fetch_add(1, Relaxed);
        let peer = &self.record.peer;
        handlers.events.report(Event::HandlerPanicked {
            client: peer.current_address(),
            protocol: peer.protocol(),
            request: self.line.printable(),
            reason: printable(panic.as_bytes(), MAX_REASON),
            is_answered,
        });
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let handlers = self.record.handlers();
        let (Some(counted), Some(counts)) = (&self.counted, &handlers.counts) else {
            return;
        };
        let took = counted.began.elapsed();
        let mut status = counted.status;
        // The server has answered for a service that was too slow.
        if status == CLIENT_CLOSED && handlers.time_limit.is_some_and(|limit| took >= limit) {
            status = StatusCode::SERVICE_UNAVAILABLE;
        }
        counts.record(&EndedRequest {
            version: self.record.peer.protocol().into(),
            method: counted.method.into(),
            status,
            took,
            bytes: counted.bytes,
            is_complete: counted.is_complete,
        });
    }
}

impl Counted {
    fn new(method: &Method) -> Self {
        Self {
            began: Instant::now(),
            method: u8::try_from(method_index(method)).unwrap_or(u8::MAX),
            has_content: !matches!(*method, Method::HEAD | Method::CONNECT),
            is_complete: false,
            status: CLIENT_CLOSED,
            bytes: 0,
            length: u64::MAX,
        }
    }

    fn on_response<B: http_body::Body>(&mut self, response: &Response<B>) {
        self.status = response.status();
        let exact = response.body().size_hint().exact();
        // The content of files often has no exact size.
        self.length = match exact {
            Some(exact) => exact,
            None => content_length(response.headers()).unwrap_or(u64::MAX),
        };
        self.is_complete = self.length == 0
            || !self.has_content
            || response.body().is_end_stream()
            || matches!(
                self.status,
                StatusCode::SWITCHING_PROTOCOLS
                    | StatusCode::NO_CONTENT
                    | StatusCode::RESET_CONTENT
                    | StatusCode::NOT_MODIFIED
            );
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The start of method and path of a request, without its query, which may contain secrets.
///
/// Requests copy it before they are passed to the service, so it must cost little.
#[derive(Clone, Copy, Debug)]
struct RequestLine {
    bytes: [u8; MAX_LINE],
    length: u8,
}

impl RequestLine {
    #[inline]
    fn new<B>(request: &Request<B>) -> Self {
        let mut line = Self {
            bytes: [0; MAX_LINE],
            length: 0,
        };
        line.push(request.method().as_str().as_bytes());
        line.push(b" ");
        match request.uri().path() {
            // CONNECT has only an authority.
            "" => line.push(request.uri().host().unwrap_or_default().as_bytes()),
            path => line.push(path.as_bytes()),
        }
        line
    }

    #[inline]
    fn push(&mut self, text: &[u8]) {
        let start = usize::from(self.length);
        let count = text.len().min(MAX_LINE - start);
        self.bytes[start..start + count].copy_from_slice(&text[..count]);
        // At most MAX_LINE, which fits.
        self.length += u8::try_from(count).unwrap_or(0);
    }

    fn printable(&self) -> String {
        printable(&self.bytes[..usize::from(self.length)], MAX_LINE)
    }
}

/// Returns a text for logs: without bytes that could end a line or control a terminal, and of at most `max` bytes before
/// they are escaped.
fn printable(bytes: &[u8], max: usize) -> String {
    bytes[..bytes.len().min(max)].escape_ascii().to_string()
}

/// Largest number of bytes of a request line that are reported after a panic (limit K551).
const MAX_LINE: usize = 63;

/// Largest number of bytes of a panic's message that are reported (limit K551).
const MAX_REASON: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn line(method: &str, uri: &str) -> String {
        let request = Request::builder().method(method).uri(uri).body(());
        RequestLine::new(&request.expect("valid")).printable()
    }

    /// Limit K551.
    #[test]
    fn request_line_is_cut_and_has_no_query() {
        assert_eq!(line("GET", "https://a/b?token=secret"), "GET /b");
        assert_eq!(line("CONNECT", "example.org:443"), "CONNECT example.org");
        let long = format!("/{}", "x".repeat(1000));
        assert_eq!(line("POST", &long).len(), MAX_LINE);
        assert_eq!(line(&"M".repeat(1000), "/").len(), MAX_LINE);
    }

    /// Limit K551.
    #[test]
    fn message_of_a_panic_stays_on_one_line_and_is_cut() {
        assert_eq!(
            printable(b"a\r\nb\x1b[2J\xff", MAX_REASON),
            r"a\r\nb\x1b[2J\xff"
        );
        assert_eq!(printable(&[b'x'; 5000], MAX_REASON).len(), MAX_REASON);
    }
}
