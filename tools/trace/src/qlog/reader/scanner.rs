//! Scans JSON text in bounded memory.

use std::io::BufRead;

use super::error::ReadError;

/// Scans JSON text: objects key by key, arrays value by value.
///
/// Checks only the syntax that separates values. The parser of the values checks the rest.
#[derive(Debug)]
pub(super) struct Scanner<R> {
    input: R,
    /// The line of the next byte, counted from 1.
    line: u64,
}

/// The position in an object or array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Position {
    /// After the opening bracket.
    First,
    /// After a value, so that a comma or the closing bracket follows.
    Later,
}

impl<R: BufRead> Scanner<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, line: 1 }
    }

    /// Returns the line of the next byte, counted from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn into_inner(self) -> R {
        self.input
    }

    fn fill(&mut self) -> Result<&[u8], ReadError> {
        loop {
            match self.input.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::io(self.line, &error)),
            }
        }
        // A second call returns the same buffer. The borrow checker rejects returning the first one.
        self.input
            .fill_buf()
            .map_err(|error| ReadError::io(self.line, &error))
    }

    fn consume(&mut self, len: usize) -> Result<(), ReadError> {
        let feeds = self.fill()?[..len].iter().filter(|&&byte| byte == b'\n');
        self.line += feeds.count() as u64;
        self.input.consume(len);
        Ok(())
    }

    /// Skips white space, and returns the next byte without consuming it. `None` is the end.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            let available = self.fill()?;
            if available.is_empty() {
                return Ok(None);
            }
            let blank = available.iter().take_while(|it| it.is_ascii_whitespace());
            let (blank, len) = (blank.count(), available.len());
            let found = available.get(blank).copied();
            self.consume(blank)?;
            if blank < len {
                return Ok(found);
            }
        }
    }

    /// Skips white space, and returns the next byte. The end of the input is an error.
    fn next(&mut self) -> Result<u8, ReadError> {
        let byte = self.peek()?.ok_or_else(|| self.cut_off())?;
        self.consume(1)?;
        Ok(byte)
    }

    /// Skips white space and consumes `byte`. Fails if another byte follows.
    pub(super) fn expect(&mut self, byte: u8) -> Result<(), ReadError> {
        let line = self.line;
        match self.next()? {
            found if found == byte => Ok(()),
            found => Err(Self::unexpected(line, found)),
        }
    }

    /// Returns the next key of an object, or `None` after its last value.
    pub(super) fn key(&mut self, position: &mut Position) -> Result<Option<String>, ReadError> {
        if !self.has_next(position, b'}')? {
            return Ok(None);
        }
        let mut text = Vec::new();
        self.value(Some(&mut text), LONGEST_KEY)?;
        self.expect(b':')?;
        let key = serde_json::from_slice(&text);
        key.map(Some)
            .map_err(|_| ReadError::new(self.line, "not JSON: a key was expected"))
    }

    /// Returns true if another value of an array follows.
    pub(super) fn item(&mut self, position: &mut Position) -> Result<bool, ReadError> {
        self.has_next(position, b']')
    }

    fn has_next(&mut self, position: &mut Position, end: u8) -> Result<bool, ReadError> {
        let is_first = std::mem::replace(position, Position::Later) == Position::First;
        let next = self.peek()?.ok_or_else(|| self.cut_off())?;
        if next == end {
            self.consume(1)?;
            return Ok(false);
        }
        if !is_first {
            self.expect(b',')?;
            // Some writers add a comma after the last value.
            if self.peek()? == Some(end) {
                self.consume(1)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Skips a value, and returns its length in bytes. Appends up to `limit` bytes of it to `kept`.
    pub(super) fn value(
        &mut self,
        mut kept: Option<&mut Vec<u8>>,
        limit: usize,
    ) -> Result<usize, ReadError> {
        self.peek()?;
        let mut walk = Walk::default();
        let mut len = 0;
        loop {
            let available = self.fill()?;
            if available.is_empty() {
                return match walk.is_scalar() && len > 0 {
                    true => Ok(len),
                    false => Err(self.cut_off()),
                };
            }
            let used = walk.over(available);
            len += used;
            if let Some(kept) = &mut kept
                && len <= limit
            {
                kept.extend_from_slice(&available[..used]);
            }
            let is_over = walk.is_over;
            self.consume(used)?;
            if is_over {
                return match len {
                    0 => Err(ReadError::new(self.line, "not JSON: a value was expected")),
                    _ => Ok(len),
                };
            }
        }
    }

    fn cut_off(&self) -> ReadError {
        let message = "the file ends too early (was its writer interrupted?)";
        ReadError::new(self.line, message)
    }

    fn unexpected(line: u64, found: u8) -> ReadError {
        let found = char::from(found).escape_default();
        ReadError::new(line, format!("not JSON: '{found}' was not expected"))
    }
}

/// The state of the scan inside a value.
#[derive(Debug, Default)]
struct Walk {
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    is_started: bool,
    is_over: bool,
}

impl Walk {
    fn is_scalar(&self) -> bool {
        self.depth == 0 && !self.is_in_string
    }

    /// Returns the number of bytes that belong to the value.
    fn over(&mut self, bytes: &[u8]) -> usize {
        for (index, &byte) in bytes.iter().enumerate() {
            if self.is_in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => {
                        self.is_in_string = false;
                        if self.depth == 0 {
                            self.is_over = true;
                            return index + 1;
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' if self.depth == 0 && self.is_started => {
                    self.is_over = true;
                    return index;
                }
                b'"' => self.is_in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' | b']' if self.depth == 1 => {
                    self.is_over = true;
                    return index + 1;
                }
                b',' | b'}' | b']' | b':' if self.depth == 0 => {
                    self.is_over = true;
                    return index;
                }
                _ if self.depth == 0 && byte.is_ascii_whitespace() => {
                    self.is_over = true;
                    return index;
                }
                _ => {}
            }
            self.is_started = true;
        }
        bytes.len()
    }
}

/// The longest key in bytes. The keys of the drafts have fewer than 40.
const LONGEST_KEY: usize = 1024;
