//! Reusable memory for reading files.

use bytes::Bytes;
use courser_base::Mutex;

/// Size of the largest buffer in bytes: the data of one batch of datagrams.
pub(crate) const SIZE: usize = 64 * 1024;

/// A buffer of one of a few sizes. Dropping it makes it available for reuse. The first write to a
/// fresh page costs more than reading the data into it, and so does an allocator that searches for space
/// between other buffers.
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
    /// Largest number of unused buffers that the process keeps for reuse.
    max_free: usize,
    free: Mutex<Vec<Box<[u8]>>>,
}

impl Class {
    const fn new(size: usize, max_free: usize) -> Self {
        Self {
            size,
            max_free,
            free: Mutex::new(Vec::new()),
        }
    }

    fn take(&'static self) -> Buffer {
        let free = self.free.lock().pop();
        let bytes = free.unwrap_or_else(|| vec![0; self.size].into_boxed_slice());
        Buffer {
            bytes: Some(bytes),
            len: 0,
            class: self,
        }
    }
}

/// The sizes of buffers. Small files and first pieces use small buffers, so a peer that reads nothing
/// occupies little memory. At most 6 MiB remain allocated while unused.
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
    /// Returns a buffer for at least `len` bytes, but at most [`SIZE`].
    pub(crate) fn take(len: usize) -> Self {
        let class = CLASSES.iter().find(|class| len <= class.size);
        class.unwrap_or(&CLASSES[CLASSES.len() - 1]).take()
    }

    /// Returns the whole buffer for writing. It contains data of earlier uses.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.as_deref_mut().unwrap_or_default()
    }

    /// Returns the first `len` bytes.
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
        let mut free = self.class.free.lock();
        if let Some(bytes) = self.bytes.take()
            && free.len() < self.class.max_free
        {
            free.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filled_buffer_is_read_and_reused() {
        static CLASS: Class = Class::new(16, 1);
        let mut buffer = CLASS.take();
        buffer.as_mut_slice()[..3].copy_from_slice(b"abc");
        assert_eq!(buffer.into_bytes(3), b"abc"[..]);
        assert_eq!(CLASS.free.lock().len(), 1);
    }

    #[test]
    fn smallest_sufficient_buffer_is_taken() {
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
            assert_eq!(Buffer::take(len).as_mut_slice().len(), size, "{len}");
        }
    }

    #[test]
    fn number_of_free_buffers_is_limited() {
        static CLASS: Class = Class::new(16, 3);
        let many: Vec<_> = (0..=CLASS.max_free).map(|_| CLASS.take()).collect();
        drop(many);
        assert_eq!(CLASS.free.lock().len(), 3);
    }
}
