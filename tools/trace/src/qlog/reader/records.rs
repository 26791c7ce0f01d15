//! Cuts a stream of JSON texts into records, one at a time.

use std::io::BufRead;

use super::error::ReadError;

/// The longest record in bytes. The record of a packet with hundreds of frames has 100 kB. K76.
pub const MAX_RECORD: usize = 2 << 20;

/// The byte before each record (RFC 7464 §2.2).
pub(super) const RECORD_SEPARATOR: u8 = 0x1e;

/// The byte between two records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Delimiter {
    /// The separator of JSON-SEQ, where a record may have several lines.
    RecordSeparator,
    /// The end of a line, where each line is a record.
    LineFeed,
}

/// One record, and the number of the line where it begins.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) line: u64,
    pub(super) bytes: Vec<u8>,
}

/// Cuts a stream into records.
#[derive(Debug)]
pub(super) struct Records<R> {
    input: R,
    delimiter: Delimiter,
    /// The line of the next byte, counted from 1.
    line: u64,
    is_broken: bool,
}

impl<R: BufRead> Records<R> {
    /// Cuts an input whose next byte is in this line.
    pub(super) fn new(input: R, delimiter: Delimiter, line: u64) -> Self {
        Self {
            input,
            delimiter,
            line,
            is_broken: false,
        }
    }

    pub(super) fn format(&self) -> &'static str {
        match self.delimiter {
            Delimiter::RecordSeparator => "JSON-SEQ",
            Delimiter::LineFeed => "NDJSON",
        }
    }

    /// Returns true after an error of the input itself.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Returns the next record that is not blank.
    pub(super) fn next(&mut self) -> Option<Result<Record, ReadError>> {
        loop {
            let record = match self.cut() {
                Ok(record) => record?,
                Err(error) => return Some(Err(error)),
            };
            if record.bytes.iter().any(|byte| !byte.is_ascii_whitespace()) {
                return Some(Ok(record));
            }
        }
    }

    /// Returns the bytes up to the next delimiter, or `None` at the end of the input.
    fn cut(&mut self) -> Result<Option<Record>, ReadError> {
        let delimiter = match self.delimiter {
            Delimiter::RecordSeparator => RECORD_SEPARATOR,
            Delimiter::LineFeed => b'\n',
        };
        let line = self.line;
        let (mut bytes, mut len) = (Vec::new(), 0);
        let limit = MAX_RECORD as u64;
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.is_broken = true;
                    return Err(ReadError::io(self.line, &error));
                }
            };
            if available.is_empty() {
                if len == 0 {
                    return Ok(None);
                }
                break;
            }
            let end = available.iter().position(|&byte| byte == delimiter);
            let piece = &available[..end.unwrap_or(available.len())];
            len += piece.len() as u64;
            if len <= limit {
                bytes.extend_from_slice(piece);
            }
            let used = piece.len() + usize::from(end.is_some());
            let feeds = available[..used].iter().filter(|&&byte| byte == b'\n');
            self.line += feeds.count() as u64;
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        if len > limit {
            let message = format!("a record of {len} bytes is longer than the limit of {limit}");
            return Err(ReadError::new(line, message));
        }
        Ok(Some(Record { line, bytes }))
    }
}
