//! Memory that files are read into, used again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Bytes of the largest buffer: what one send of a batch of datagrams takes.
pub(crate) const SIZE: usize = 64 * 1024;

/// A buffer of one of a few sizes, which goes back when it is dropped. Pages that are written for the
/// first time cost more than what is read into them, and so does an allocator that has to find room
/// for buffers between others.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Option<Box<[u8]>>,
    len: usize,
    class: &'static Class,
}

/// The buffers of one size.
#[derive(Debug)]
struct Class {
    size: usize,
    /// Buffers that stay with the process when nobody uses them.
    most_free: usize,
    free: Mutex<Vec<Box<[u8]>>>,
}

impl Class {
    const fn new(size: usize, most_free: usize) -> Self {
        Self {
            size,
            most_free,
            free: Mutex::new(Vec::new()),
        }
    }

    fn take(&'static self) -> Buffer {
        let free = self.free().pop();
        let bytes = free.unwrap_or_else(|| vec![0; self.size].into_boxed_slice());
        Buffer {
            bytes: Some(bytes),
            len: 0,
            class: self,
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Box<[u8]>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Smaller buffers for small files and first pieces, so that a peer that reads nothing holds little
/// memory; 6 MiB stay free at most.
static CLASSES: [Class; 7] = [
    Class::new(512, 256),
    Class::new(2 * 1024, 128),
    Class::new(4 * 1024, 256),
    Class::new(8 * 1024, 64),
    Class::new(16 * 1024, 64),
    Class::new(32 * 1024, 32),
    Class::new(SIZE, 32),
];

impl Buffer {
    /// Returns a buffer with room for `len` bytes, or for [`SIZE`] if that is less.
    pub(crate) fn take(len: usize) -> Self {
        let class = CLASSES.iter().find(|class| len <= class.size);
        class.unwrap_or(&CLASSES[CLASSES.len() - 1]).take()
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
        let mut free = self.class.free();
        if let Some(bytes) = self.bytes.take()
            && free.len() < self.class.most_free
        {
            free.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_hands_out_what_was_filled_and_goes_back() {
        static CLASS: Class = Class::new(16, 1);
        let mut buffer = CLASS.take();
        buffer.room()[..3].copy_from_slice(b"abc");
        assert_eq!(buffer.into_bytes(3), b"abc"[..]);
        assert_eq!(CLASS.free().len(), 1);
    }

    #[test]
    fn a_buffer_is_as_small_as_it_can_be() {
        for (len, size) in [
            (0, 512),
            (512, 512),
            (513, 2048),
            (2049, 4096),
            (4096, 4096),
            (4097, 8 * 1024),
            (8 * 1024 + 1, 16 * 1024),
            (16 * 1024 + 1, 32 * 1024),
            (32 * 1024 + 1, SIZE),
            (SIZE + 1, SIZE),
        ] {
            assert_eq!(Buffer::take(len).room().len(), size, "{len}");
        }
    }

    #[test]
    fn no_more_than_some_stay_free() {
        static CLASS: Class = Class::new(16, 3);
        let many: Vec<_> = (0..=CLASS.most_free).map(|_| CLASS.take()).collect();
        drop(many);
        assert_eq!(CLASS.free().len(), 3);
    }
}
