//! A request stream, read as a driver does.

use bytes::Bytes;
use courser_base::{Side, Time};
use courser_http3::{
    Connection, Error, FieldLimits, FieldsToSend, MessageReader, Part, Protocol, RequestHead,
    ResponseHead, Section,
};
use http::{HeaderMap, Method};

/// A request stream and its bytes in transit.
pub(super) struct Stream {
    side: Side,
    reader: MessageReader,
    /// Bytes in transit.
    queue: Vec<u8>,
    has_end: bool,
    /// A blocked field section. The flag is true for trailers.
    blocked: Option<(Bytes, bool)>,
    is_over: bool,
}

impl Stream {
    pub(super) fn new(side: Side) -> Self {
        let limits = match side {
            Side::Server => FieldLimits::REQUEST,
            Side::Client => FieldLimits::RESPONSE,
        };
        Self {
            side,
            reader: MessageReader::new(side, limits),
            queue: Vec::new(),
            has_end: false,
            blocked: None,
            is_over: false,
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

    /// Delivers at most `len` bytes.
    pub(super) fn deliver(
        &mut self,
        connection: &mut Connection,
        now: Time,
        stream: u64,
        len: usize,
    ) -> Result<(), Error> {
        // A blocked stream is not read.
        if self.blocked.is_some() || self.is_over {
            return Ok(());
        }
        let chunk: Vec<u8> = self.queue.drain(..len.min(self.queue.len())).collect();
        self.reader.push(chunk.into());
        self.read(connection, now, stream)
    }

    fn read(&mut self, connection: &mut Connection, now: Time, stream: u64) -> Result<(), Error> {
        while let Some(part) = self.reader.poll()? {
            match part {
                Part::Head(section) => self.on_head(connection, stream, section)?,
                Part::Trailers(section) => self.on_trailers(connection, stream, section)?,
                Part::Data(data) => assert!(!data.is_empty()),
                Part::Nothing => connection.on_empty_frame(now)?,
            }
            if self.blocked.is_some() {
                return Ok(());
            }
        }
        if self.has_end && self.queue.is_empty() {
            self.is_over = true;
            self.reader.finish()?;
        }
        Ok(())
    }

    /// Decodes the blocked section again and reads on.
    pub(super) fn on_unblocked(
        &mut self,
        connection: &mut Connection,
        now: Time,
        stream: u64,
    ) -> Result<(), Error> {
        let Some((section, is_trailers)) = self.blocked.take() else {
            return Ok(());
        };
        match is_trailers {
            true => self.on_trailers(connection, stream, section)?,
            false => self.on_head(connection, stream, section)?,
        }
        assert!(self.blocked.is_none(), "blocked after it was unblocked");
        self.read(connection, now, stream)
    }

    fn on_head(
        &mut self,
        connection: &mut Connection,
        stream: u64,
        section: Bytes,
    ) -> Result<(), Error> {
        if self.side.is_server() {
            match connection.decode_request(stream, &section)? {
                Section::Blocked => self.blocked = Some((section, false)),
                Section::Decoded(head) => {
                    let (request, length) = head.map_err(courser_http3::FieldsError::to_error)?;
                    check_request(&(request.clone(), length));
                    let is_extended = request.extensions().get::<Protocol>().is_some();
                    self.reader
                        .on_request(request.method(), is_extended, length);
                }
            }
            return Ok(());
        }
        match connection.decode_response(stream, &section)? {
            Section::Blocked => self.blocked = Some((section, false)),
            Section::Decoded(head) => {
                let (response, length): ResponseHead =
                    head.map_err(courser_http3::FieldsError::to_error)?;
                check_headers(response.headers());
                self.reader
                    .on_response(response.status(), &Method::GET, length)?;
            }
        }
        Ok(())
    }

    fn on_trailers(
        &mut self,
        connection: &mut Connection,
        stream: u64,
        section: Bytes,
    ) -> Result<(), Error> {
        match connection.decode_trailers(stream, &section)? {
            Section::Blocked => self.blocked = Some((section, true)),
            Section::Decoded(trailers) => {
                check_headers(&trailers.map_err(courser_http3::FieldsError::to_error)?);
            }
        }
        Ok(())
    }

    pub(super) fn check(&self, side: Side) {
        let limits = match side {
            Side::Server => FieldLimits::REQUEST,
            Side::Client => FieldLimits::RESPONSE,
        };
        let most = limits.size as usize + 16 * limits.lines + 1024;
        assert!(self.reader.memory() <= most, "{}", self.reader.memory());
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
