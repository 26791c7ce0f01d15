//! A cursor over bytes that somebody else wrote.

use crate::error::DecodeError;
use crate::varint::MAX_VARINT;

/// Reads fields from a slice, front to back, and never past its end.
///
/// A read that fails leaves the cursor where it was.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    unread: &'a [u8],
    /// Length of the whole input; what was read is this minus what is unread.
    len: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            unread: bytes,
            len: bytes.len(),
        }
    }

    /// Starts at byte `start`, so that offsets count from the start of `bytes` all the same.
    /// A `start` past the end leaves nothing to read.
    #[inline]
    pub fn starting_at(bytes: &'a [u8], start: usize) -> Self {
        Self {
            unread: bytes.get(start..).unwrap_or_default(),
            len: bytes.len(),
        }
    }

    /// Bytes read so far.
    #[inline]
    pub const fn offset(&self) -> usize {
        self.len - self.unread.len()
    }

    /// Bytes left.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.unread.len()
    }

    /// True at the end.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.unread.is_empty()
    }

    /// The next byte, which stays unread.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.unread.first().copied()
    }

    /// What is left, which stays unread.
    #[inline]
    pub const fn unread(&self) -> &'a [u8] {
        self.unread
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// Truncated input, as for all reads.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        let (&value, unread) = self.unread.split_first().ok_or_else(|| self.truncated())?;
        self.unread = unread;
        Ok(value)
    }

    /// Reads two bytes, big-endian.
    ///
    /// # Errors
    /// Truncated input.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Reads four bytes, big-endian.
    ///
    /// # Errors
    /// Truncated input.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Reads eight bytes, big-endian.
    ///
    /// # Errors
    /// Truncated input.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// Reads a varint in any of its encodings. RFC 9000 §16.
    ///
    /// # Errors
    /// Truncated input.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        // A branch per length: frames of one connection look alike, so it is predicted, and the
        // next field need not wait for this one's length. On the fields of STREAM frames that is
        // 1 ns each; shifting the length out of an 8-byte load took 4.
        match self.peek() {
            Some(0..=0x3f) => self.u8().map(u64::from),
            Some(0x40..=0x7f) => self.u16().map(|value| u64::from(value & 0x3fff)),
            Some(0x80..=0xbf) => self.u32().map(|value| u64::from(value & 0x3fff_ffff)),
            Some(0xc0..) => self.u64().map(|value| value & MAX_VARINT),
            None => Err(self.truncated()),
        }
    }

    /// Reads `len` bytes.
    ///
    /// # Errors
    /// Truncated input.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (bytes, unread) = self
            .unread
            .split_at_checked(len)
            .ok_or_else(|| self.truncated())?;
        self.unread = unread;
        Ok(bytes)
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// Truncated input.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (&array, unread) = self
            .unread
            .split_first_chunk::<N>()
            .ok_or_else(|| self.truncated())?;
        self.unread = unread;
        Ok(array)
    }

    /// Reads everything that is left, possibly nothing.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.unread)
    }

    /// Reads a varint and as many bytes as it says.
    ///
    /// # Errors
    /// Truncated input, which a length past the end is too.
    #[inline]
    pub fn varint_bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let before = self.clone();
        let len = self.varint()?;
        let bytes = usize::try_from(len)
            .ok()
            .and_then(|len| self.unread.split_at_checked(len));
        let Some((bytes, unread)) = bytes else {
            *self = before;
            return Err(self.truncated());
        };
        self.unread = unread;
        Ok(bytes)
    }

    #[cold]
    fn truncated(&self) -> DecodeError {
        DecodeError::truncated(self.offset())
    }
}

#[cfg(test)]
mod tests;
