//! The request lines of an HTTP/1.1 connection, before hyper reads them.
//!
//! hyper refuses some targets that other servers accept, and drops parts of others (`docs/design/0062`). To find the
//! request lines, the beginning of each message must be known. Messages whose length could be read in two ways are
//! refused by hyper; after one of them, and within tunnels, all bytes pass unchanged.

use courser_http3_tokio::hooks::{must_be_escaped, put_escaped};
use memchr::memchr;

use crate::cause::Cause;
use crate::exchange::marks::{Mark, Marks};

/// Follows the messages of a client.
#[derive(Debug)]
pub(super) struct Heads {
    marks: Marks,
    state: State,
    /// The beginning of a line that has arrived in part, as far as it is needed.
    partial: Vec<u8>,
    /// The target of a request line that has arrived in part.
    target: Target,
    framing: Framing,
}

/// The part of a message that is being read.
///
/// ```text
///            +------------------- no content -------------------+
///            v                                                  |
///   RequestLine --> Fields --+--------------------------------->+
///            ^               +--> Content --------------------->+
///            |               +--> ChunkSize --> Trailers ------>+
///            |               |     ^     |
///            |               |     +- Chunk
///            |               +--> Unknown
///            +------------------------- end --------------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    RequestLine,
    Fields,
    /// The rest of content with a known length.
    Content(u64),
    ChunkSize,
    /// The rest of a chunk and the end of its line.
    Chunk(u64),
    Trailers,
    /// Messages can no longer be told apart.
    Unknown,
}

/// What the fields so far say about the content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Framing {
    None,
    Length(u64),
    Chunked,
    /// Two lengths, another coding, an upgrade or a tunnel.
    Unknown,
}

/// The progress within a request line.
#[derive(Clone, Copy, Default, Debug)]
struct Target {
    /// Number of spaces so far. The target is between the first and the second.
    spaces: u8,
    /// Number of slashes in the target. The path of an absolute URI begins with the third.
    slashes: u8,
    has_begun: bool,
    is_origin_form: bool,
    is_query: bool,
    has_fragment: bool,
}

impl Heads {
    pub(super) const fn new(marks: Marks) -> Self {
        Self {
            marks,
            state: State::RequestLine,
            partial: Vec::new(),
            target: Target {
                spaces: 0,
                slashes: 0,
                has_begun: false,
                is_origin_form: false,
                is_query: false,
                has_fragment: false,
            },
            framing: Framing::None,
        }
    }

    /// Reads received bytes. Returns true if hyper must receive others, which are then in `output`, and false if it can
    /// have them in place.
    #[inline]
    pub(super) fn read(&mut self, received: &[u8], output: &mut Vec<u8>) -> bool {
        let mut rest = received;
        let mut copied = 0;
        while !rest.is_empty() {
            let at = received.len() - rest.len();
            match self.state {
                State::Unknown => break,
                State::Content(left) => rest = self.skip(rest, left),
                State::Chunk(left) => rest = self.skip(rest, left),
                _ => {
                    let end = memchr(b'\n', rest).map(|end| end + 1);
                    let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
                    rest = after;
                    if self.state == State::RequestLine
                        && let Some(changed) = self.request_line(line, end.is_some())
                    {
                        output.extend_from_slice(&received[copied..at]);
                        output.extend_from_slice(&changed);
                        copied = at + line.len();
                    }
                    match end {
                        Some(_) => self.line(line),
                        None => self.keep(line),
                    }
                }
            }
        }
        if copied > 0 {
            output.extend_from_slice(&received[copied..]);
        }
        copied > 0
    }

    /// Skips content.
    fn skip<'a>(&mut self, bytes: &'a [u8], left: u64) -> &'a [u8] {
        let len = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let left = left - len as u64;
        self.state = match self.state {
            State::Content(_) if left == 0 => State::RequestLine,
            State::Content(_) => State::Content(left),
            _ if left == 0 => State::ChunkSize,
            _ => State::Chunk(left),
        };
        &bytes[len..]
    }

    /// Keeps the beginning of a line whose end has not arrived.
    #[cold]
    fn keep(&mut self, part: &[u8]) {
        let room = MAX_PARTIAL - self.partial.len().min(MAX_PARTIAL);
        self.partial
            .extend_from_slice(&part[..part.len().min(room)]);
    }

    /// Processes a line that has arrived completely, or its rest.
    #[inline]
    fn line(&mut self, rest: &[u8]) {
        if self.partial.is_empty() {
            self.whole_line(rest);
            return;
        }
        self.keep(rest);
        let line = std::mem::take(&mut self.partial);
        // A longer line has lost its end, which only matters if it is one of those that are read.
        self.whole_line(&line);
    }

    #[inline]
    fn whole_line(&mut self, line: &[u8]) {
        let text = line.strip_suffix(b"\r\n");
        self.state = match self.state {
            // Empty lines may precede a request (RFC 9112 §2.2).
            State::RequestLine if matches!(line, b"\r\n" | b"\n") => State::RequestLine,
            State::RequestLine => {
                let is_tunnel = line.starts_with(b"CONNECT ");
                self.framing = if is_tunnel {
                    Framing::Unknown
                } else {
                    Framing::None
                };
                self.target = Target::default();
                State::Fields
            }
            State::Fields => match (text, self.framing) {
                (Some(b""), Framing::None | Framing::Length(0)) => State::RequestLine,
                (Some(b""), Framing::Length(len)) => State::Content(len),
                (Some(b""), Framing::Chunked) => State::ChunkSize,
                (Some(b""), Framing::Unknown) => State::Unknown,
                // Other ends of lines are read in different ways.
                (None, _) if line.len() < MAX_PARTIAL => State::Unknown,
                _ => {
                    self.field(line);
                    State::Fields
                }
            },
            State::ChunkSize => match text.and_then(chunk_size) {
                Some(0) => State::Trailers,
                Some(size) => State::Chunk(size + 2),
                None => State::Unknown,
            },
            State::Trailers if text == Some(b"") => State::RequestLine,
            State::Trailers if text.is_none() && line.len() < MAX_PARTIAL => State::Unknown,
            state => state,
        };
    }

    /// Reads a field line, as far as it concerns the length of the content.
    #[inline]
    fn field(&mut self, line: &[u8]) {
        let is_relevant = matches!(
            line.first(),
            Some(b'C' | b'c' | b'T' | b't' | b'U' | b'u' | b' ' | b'\t')
        );
        if is_relevant {
            self.framing = self.framing.with(line);
        }
    }

    /// Processes a request line, or a part of it. Returns the bytes that hyper must receive instead, if it must.
    #[inline]
    fn request_line(&mut self, part: &[u8], is_end: bool) -> Option<Vec<u8>> {
        let is_whole = is_end && self.partial.is_empty();
        // Without an early end, so that the compiler uses vector instructions.
        let is_usual = !part
            .iter()
            .fold(false, |found, &byte| found | is_unusual(byte));
        // Lines of OPTIONS may have no path.
        if is_whole && is_usual && part.first() != Some(&b'O') {
            return None;
        }
        self.unusual_line(part, is_end)
    }

    #[cold]
    fn unusual_line(&mut self, part: &[u8], is_end: bool) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(part.len() + 64);
        for &byte in part {
            match self.target.add(byte) {
                true => put_escaped(byte, &mut out),
                false => out.push(byte),
            }
        }
        if is_end {
            let mark = match self.target.has_fragment {
                true => Some(Mark::Malformed(Cause::InvalidTarget)),
                false => self.server_target(part),
            };
            if let Some((name, value)) = mark.and_then(|mark| self.marks.field(&mark)) {
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b": ");
                out.extend_from_slice(&value);
                out.extend_from_slice(b"\r\n");
            }
        }
        (out != part).then_some(out)
    }

    /// Returns an asterisk as the target of OPTIONS for a URI without path and query (RFC 9112 §3.2.4).
    fn server_target(&self, rest: &[u8]) -> Option<Mark> {
        if self.partial.len() == MAX_PARTIAL {
            return None;
        }
        let line = [&self.partial, rest].concat();
        let target = line.strip_prefix(b"OPTIONS ")?;
        let target = &target[..memchr(b' ', target)?];
        let scheme = memchr::memmem::find(target, b"://")?;
        let authority = &target[scheme + 3..];
        let is_server = !authority.iter().any(|byte| b"/?#".contains(byte));
        is_server.then(|| Mark::Target(b"*".to_vec()))
    }
}

impl Framing {
    /// Returns the framing after a field line that may concern it.
    fn with(self, line: &[u8]) -> Self {
        // A line that continues the one before.
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return Self::Unknown;
        }
        let Some(colon) = memchr(b':', line) else {
            return self;
        };
        let (name, value) = line.split_at(colon);
        let value = value[1..].trim_ascii();
        // The line may have lost its end, as in `content-length:` with many spaces before its number.
        let is_cut = line.len() >= MAX_PARTIAL;
        if name.eq_ignore_ascii_case(b"content-length") {
            return match (self, decimal(value)) {
                (Self::None, Some(len)) if !is_cut => Self::Length(len),
                _ => Self::Unknown,
            };
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return match self {
                Self::None if !is_cut && value.eq_ignore_ascii_case(b"chunked") => Self::Chunked,
                _ => Self::Unknown,
            };
        }
        match name.eq_ignore_ascii_case(b"upgrade") {
            true => Self::Unknown,
            false => self,
        }
    }
}

impl Target {
    /// Adds a byte of the request line. Returns true if it must be percent-encoded.
    fn add(&mut self, byte: u8) -> bool {
        if byte == b' ' {
            self.spaces = self.spaces.saturating_add(1);
            return false;
        }
        if self.spaces != 1 {
            return false;
        }
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        match byte {
            b'/' => {
                self.is_origin_form |= is_first;
                self.slashes = self.slashes.saturating_add(1);
            }
            b'?' => self.is_query = true,
            b'#' => self.has_fragment = true,
            _ => {}
        }
        let is_in_path = self.is_origin_form || self.slashes >= 3 || self.is_query;
        is_in_path && must_be_escaped(byte, self.is_query)
    }
}

/// Returns the value of a content-length with an unambiguous number.
fn decimal(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    digits.parse().ok()
}

/// Returns the size of a chunk (RFC 9112 §7.1).
fn chunk_size(line: &[u8]) -> Option<u64> {
    let end = memchr(b';', line).unwrap_or(line.len());
    let digits = &line[..end];
    let is_number = (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    u64::from_str_radix(digits, 16).ok()
}

/// Number of bytes that are kept of a line that arrives in parts (limit K410).
const MAX_PARTIAL: usize = 512;

/// Returns true for bytes that may have to be changed in a request line.
#[inline]
const fn is_unusual(byte: u8) -> bool {
    (byte >= 0x80)
        | (byte == b'"')
        | (byte == b'<')
        | (byte == b'>')
        | (byte == b'`')
        | (byte == b'#')
}

#[cfg(test)]
mod tests;
