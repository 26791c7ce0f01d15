//! A request stream, read as a driver does.

use courser_base::{Side, Time};
use courser_http3::{
    Connection, Decoding, Error, FieldLimits, FieldsToSend, Protocol, RequestHead, RequestStream,
    Step,
};
use http::{HeaderMap, Method};

/// A request stream and its bytes in transit.
pub(super) struct Stream {
    message: RequestStream,
    queue: Vec<u8>,
    has_end: bool,
    /// Bytes held for a blocked field section, or zero.
    held: u64,
    is_unblocked: bool,
}

impl Stream {
    pub(super) fn new(side: Side, stream: u64) -> Self {
        let message = match side {
            Side::Server => RequestStream::request(stream, FieldLimits::REQUEST),
            Side::Client => RequestStream::response(stream, FieldLimits::RESPONSE, &Method::GET),
        };
        Self {
            message,
            queue: Vec::new(),
            has_end: false,
            held: 0,
            is_unblocked: false,
        }
    }

    pub(super) fn queue(&mut self, bytes: &[u8]) {
        if !self.has_end && self.queue.len() < MAX_QUEUE {
            self.queue.extend_from_slice(bytes);
        }
    }

    pub(super) fn finish(&mut self) {
        self.has_end = true;
    }

    /// Delivers at most `len` bytes, unless the stream is blocked.
    pub(super) fn deliver(
        &mut self,
        connection: &mut Connection,
        now: Time,
        len: usize,
    ) -> Result<(), Error> {
        if self.held > 0 || self.message.is_over() {
            return Ok(());
        }
        let chunk: Vec<u8> = self.queue.drain(..len.min(self.queue.len())).collect();
        // All earlier bytes were read.
        self.message.push(chunk.into());
        self.read(connection, now)
    }

    fn read(&mut self, connection: &mut Connection, now: Time) -> Result<(), Error> {
        loop {
            match self.message.poll() {
                Step::Read if self.has_end && self.queue.is_empty() => self.message.on_fin(),
                Step::Read | Step::End => return Ok(()),
                // A server responds with an error and stops the stream.
                Step::TooLarge(_) => self.message.abandon(connection),
                Step::Decode => match self.message.decode(connection) {
                    Decoding::Done => {
                        assert_eq!(self.message.take_held(), std::mem::take(&mut self.held));
                    }
                    Decoding::Blocked { hold } => {
                        assert!(!self.is_unblocked, "blocked after it was unblocked");
                        assert_eq!(hold == 0, self.held > 0, "a section is held once");
                        self.held += hold;
                        return Ok(());
                    }
                },
                Step::Charge => {
                    let charged = self.message.charge(connection, now);
                    assert_eq!(charged.is_err(), self.message.is_over());
                    charged?;
                }
                Step::Headers => self.on_headers(),
                Step::Content(data) => assert!(!data.is_empty()),
                Step::Trailers(trailers) => check_headers(&trailers),
                step @ (Step::Frame { .. } | Step::Claimed { .. }) => {
                    panic!("requests have no extensions here: {step:?}")
                }
            }
            self.is_unblocked = false;
        }
    }

    /// Decodes the blocked section again and reads on.
    pub(super) fn on_unblocked(
        &mut self,
        connection: &mut Connection,
        now: Time,
    ) -> Result<(), Error> {
        self.is_unblocked = self.held > 0;
        self.read(connection, now)
    }

    fn on_headers(&mut self) {
        if let Some(head) = self.message.take_request() {
            return check_request(&head);
        }
        let (response, _) = self.message.take_response().expect("a header section");
        check_headers(response.headers());
    }

    pub(super) fn check(&self, side: Side) {
        let limits = match side {
            Side::Server => FieldLimits::REQUEST,
            Side::Client => FieldLimits::RESPONSE,
        };
        // Enough for one joined section and the space for the next one.
        let most = 2 * (limits.size as usize + 16 * limits.lines) + 1024;
        assert!(self.message.memory() <= most, "{}", self.message.memory());
    }
}

/// The limit of bytes in transit on one stream, above which no more are queued.
const MAX_QUEUE: usize = 64 * 1024;

/// Checks that a decoded request is valid (RFC 9114 §4.2, §4.3.1).
fn check_request((request, _): &RequestHead) {
    check_headers(request.headers());
    let uri = request.uri();
    assert!(
        uri.authority().is_some_and(|it| !it.as_str().is_empty())
            || uri.path() == "*"
            || request.headers().contains_key("host")
    );
    let is_tunnel =
        *request.method() == Method::CONNECT && request.extensions().get::<Protocol>().is_none();
    if !is_tunnel {
        assert!(uri.scheme().is_some(), "{uri}");
        assert!(uri.path().starts_with('/') || uri.path() == "*", "{uri}");
    }
    let (parts, ()) = request.clone().into_parts();
    let fields = FieldsToSend::request(&parts);
    assert!(fields.is_ok(), "cannot be forwarded: {:?}", fields.err());
}

/// Checks that there are no connection-specific fields and no line breaks in values (RFC 9114 §4.2).
fn check_headers(headers: &HeaderMap) {
    for name in [
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
    ] {
        assert!(!headers.contains_key(name), "{name}");
    }
    for value in headers.get_all("te") {
        assert_eq!(value, "trailers");
    }
    for value in headers.values() {
        let is_line = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
        assert!(!value.as_bytes().iter().any(is_line), "{value:?}");
    }
}
