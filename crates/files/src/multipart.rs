//! Responses with several ranges: `multipart/byteranges` (RFC 9110 §14.6).

use std::collections::VecDeque;
use std::fmt;
use std::hash::BuildHasher as _;
use std::io;
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use foldhash::fast::RandomState;
use http::HeaderValue;

use crate::content::Reader;

/// The ranges of a response, and the text between them.
#[derive(Debug)]
pub(crate) struct Parts {
    /// The ranges that were not begun yet.
    ranges: VecDeque<Range<u64>>,
    boundary: Boundary,
    /// The content type of the whole.
    kind: HeaderValue,
    /// The length of the whole content.
    complete: u64,
    position: Position,
}

/// The text that precedes the content that is sent next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Position {
    /// The header section of the first part.
    First,
    /// The header section of another part, or the final delimiter.
    Next,
    End,
}

impl Parts {
    /// Creates a response with parts of content of `complete` bytes.
    pub(crate) fn new(ranges: Vec<Range<u64>>, kind: HeaderValue, complete: u64) -> Self {
        Self {
            ranges: ranges.into(),
            boundary: Boundary::new(),
            kind,
            complete,
            position: Position::First,
        }
    }

    /// Returns the content type of the response.
    pub(crate) fn content_type(&self) -> HeaderValue {
        let text = format!("multipart/byteranges; boundary={}", self.boundary);
        HeaderValue::try_from(text).unwrap_or_else(|_| unreachable!("a boundary is hexadecimal"))
    }

    pub(crate) fn first(&self) -> Option<&Range<u64>> {
        self.ranges.front()
    }

    /// Returns the number of bytes of the parts that were not begun yet, with their header sections
    /// and the final delimiter.
    pub(crate) fn remaining(&self) -> u64 {
        if self.position == Position::End {
            return 0;
        }
        let mut position = self.position;
        let mut bytes = 0;
        for range in &self.ranges {
            bytes += self.header_section(position, range).len() as u64 + range.end - range.start;
            position = Position::Next;
        }
        bytes + self.last_delimiter().len() as u64
    }

    /// Returns the text before the next content, and the range of that content. The final delimiter
    /// precedes none.
    fn advance(&mut self) -> Option<(Bytes, Option<Range<u64>>)> {
        if self.position == Position::End {
            return None;
        }
        let Some(range) = self.ranges.pop_front() else {
            self.position = Position::End;
            return Some((self.last_delimiter().into(), None));
        };
        let text = self.header_section(self.position, &range);
        self.position = Position::Next;
        Some((text.into(), Some(range)))
    }

    fn header_section(&self, position: Position, range: &Range<u64>) -> Vec<u8> {
        let line_end = match position {
            Position::First => "",
            _ => "\r\n",
        };
        let mut text = format!("{line_end}--{}\r\nContent-Type: ", self.boundary).into_bytes();
        // A content type of the user may have bytes beyond ASCII.
        text.extend_from_slice(self.kind.as_bytes());
        let (first, last, complete) = (range.start, range.end - 1, self.complete);
        let range = format!("\r\nContent-Range: bytes {first}-{last}/{complete}\r\n\r\n");
        text.extend_from_slice(range.as_bytes());
        text
    }

    fn last_delimiter(&self) -> String {
        format!("\r\n--{}--\r\n", self.boundary)
    }
}

/// The body of a response with several ranges. It holds no content beyond that of its source, so that
/// many ranges cost no more memory than one.
#[derive(Debug)]
pub(crate) struct Multipart {
    parts: Parts,
    source: Source,
    /// The number of bytes still to be returned.
    left: u64,
}

/// The content from which ranges are taken.
#[derive(Debug)]
enum Source {
    Memory {
        whole: Bytes,
        /// The content that is returned next.
        next: Option<Bytes>,
    },
    File(Reader),
}

impl Multipart {
    pub(crate) fn of_memory(parts: Parts, whole: Bytes) -> Self {
        Self {
            left: parts.remaining(),
            parts,
            source: Source::Memory { whole, next: None },
        }
    }

    /// Creates a body of a file. `reader` has begun with the first range.
    pub(crate) fn of_file(parts: Parts, reader: Reader) -> Self {
        Self {
            left: parts.remaining(),
            parts,
            source: Source::File(reader),
        }
    }

    /// Returns the number of bytes still to be returned.
    pub(crate) const fn remaining(&self) -> u64 {
        self.left
    }

    /// Returns the next piece, or `None` at the end.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let piece = match ready!(self.poll_piece(cx)) {
            Some(Ok(piece)) => piece,
            other => {
                self.left = 0;
                return Poll::Ready(other);
            }
        };
        self.left = self.left.saturating_sub(piece.len() as u64);
        Poll::Ready(Some(Ok(piece)))
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let is_first = self.parts.position == Position::First;
        let content = match &mut self.source {
            // The reader has begun with the first range, whose header section comes before it.
            _ if is_first => None,
            Source::Memory { next, .. } => next.take().map(Ok),
            Source::File(reader) => ready!(reader.poll_read(cx)),
        };
        if content.is_some() {
            return Poll::Ready(content);
        }
        let Some((text, range)) = self.parts.advance() else {
            return Poll::Ready(None);
        };
        match (&mut self.source, range) {
            (Source::Memory { whole, next }, Some(range)) => {
                // The length of content in memory fits into usize.
                *next = Some(whole.slice(range.start as usize..range.end as usize));
            }
            (Source::File(reader), Some(range)) if !is_first => reader.move_to(range),
            _ => {}
        }
        Poll::Ready(Some(Ok(text)))
    }
}

/// A delimiter that the content does not contain: its author cannot predict it.
#[derive(Clone, Copy, Debug)]
struct Boundary([u64; 2]);

impl Boundary {
    fn new() -> Self {
        let number = NUMBER.fetch_add(1, Relaxed);
        Self([SECRETS.0.hash_one(number), SECRETS.1.hash_one(number)])
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0[0], self.0[1])
    }
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

static SECRETS: LazyLock<(RandomState, RandomState)> = LazyLock::new(Default::default);
