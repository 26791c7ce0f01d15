//! Memory that large files are read into, used again.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// Bytes of a buffer: what one send of a batch of datagrams takes.
pub(crate) const SIZE: usize = 64 * 1024;

/// A buffer of [`SIZE`] bytes, which goes back when it is dropped. Pages that are written for the first
/// time cost more than what is read into them.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Option<Box<[u8]>>,
    len: usize,
}

static FREE: Mutex<Vec<Box<[u8]>>> = Mutex::new(Vec::new());

impl Buffer {
    pub(crate) fn take() -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let bytes = free.unwrap_or_else(|| vec![0; SIZE].into_boxed_slice());
        Self {
            bytes: Some(bytes),
            len: 0,
        }
    }

    /// All of it, to be filled.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.bytes.as_deref_mut().unwrap_or_default()
    }

    /// Hands out the first `len` bytes.
    pub(crate) fn into_bytes(mut self, len: usize) -> Bytes {
        self.len = len;
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        let bytes = self.bytes.as_deref().unwrap_or_default();
        &bytes[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = self.bytes.take()
            && free.len() < MOST_FREE
        {
            free.push(bytes);
        }
    }
}

/// 2 MiB that stay with the process once it has sent large files.
const MOST_FREE: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_hands_out_what_was_filled() {
        let mut buffer = Buffer::take();
        assert_eq!(buffer.room().len(), SIZE);
        buffer.room()[..3].copy_from_slice(b"abc");
        assert_eq!(buffer.into_bytes(3), b"abc"[..]);
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).len();
        assert!(free >= 1, "it went back");
    }
}
