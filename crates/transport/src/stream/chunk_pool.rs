//! A pool of recycled 64 KiB buffers.

use std::sync::Arc;

use courser_base::Mutex;

/// A shared pool of 64 KiB buffers, last in first out.
///
/// The first access to each of the 16 fresh pages of such a buffer is a page fault, so buffers are
/// reused between streams and connections, the most recent first. Clones share one pool. Only
/// streams with bulk data use it.
#[derive(Clone, Debug)]
pub struct ChunkPool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max_kept: usize,
    chunks: Mutex<Vec<Vec<u8>>>,
}

impl ChunkPool {
    /// Capacity of every buffer in the pool.
    pub const CHUNK: usize = 64 << 10;

    /// Creates an empty pool that keeps up to `max_kept` unused buffers.
    pub fn new(max_kept: usize) -> Self {
        Self(Arc::new(Shared {
            max_kept,
            chunks: Mutex::new(Vec::new()),
        }))
    }

    /// Returns an empty buffer with a capacity of [`ChunkPool::CHUNK`] bytes.
    pub fn take(&self) -> Vec<u8> {
        let kept = self.chunks().pop();
        kept.unwrap_or_else(|| Vec::with_capacity(Self::CHUNK))
    }

    /// Returns a buffer to the pool. Frees it if it has another size or the pool is full.
    pub fn give(&self, mut chunk: Vec<u8>) {
        if chunk.capacity() != Self::CHUNK {
            return;
        }
        chunk.clear();
        let mut chunks = self.chunks();
        if chunks.len() < self.0.max_kept {
            chunks.push(chunk);
        }
    }

    /// Returns the number of unused buffers kept.
    pub fn kept(&self) -> usize {
        self.chunks().len()
    }

    /// Locks the list. Ignores poisoning: a panic cannot interrupt a change of the list.
    fn chunks(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.chunks.lock()
    }
}

#[cfg(test)]
mod tests;
