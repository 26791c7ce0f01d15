//! Recycled 64 KiB buffers.

use std::sync::{Arc, Mutex, PoisonError};

/// A shared store of 64 KiB buffers, last in first out.
///
/// The first touch of each of the 16 fresh pages of such a buffer is a fault into the kernel,
/// so buffers that moved bulk data once are
/// handed from stream to stream and from connection to connection, the warmest first. Clones
/// share one store. Only streams that move bulk data use it.
#[derive(Clone, Debug)]
pub struct ChunkPool(Arc<Shelf>);

#[derive(Debug)]
struct Shelf {
    max_kept: usize,
    chunks: Mutex<Vec<Vec<u8>>>,
}

impl ChunkPool {
    /// Capacity of every buffer in the pool.
    pub const CHUNK: usize = 64 << 10;

    /// An empty pool that keeps up to `max_kept` unused buffers.
    pub fn new(max_kept: usize) -> Self {
        Self(Arc::new(Shelf {
            max_kept,
            chunks: Mutex::new(Vec::new()),
        }))
    }

    /// An empty buffer with room for [`ChunkPool::CHUNK`] bytes.
    pub fn take(&self) -> Vec<u8> {
        let kept = self.chunks().pop();
        kept.unwrap_or_else(|| Vec::with_capacity(Self::CHUNK))
    }

    /// Gives a buffer back. One of another size, or one too many, is freed.
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

    /// How many unused buffers are kept right now.
    pub fn kept(&self) -> usize {
        self.chunks().len()
    }

    /// A panic while the lock was held cannot leave a list of buffers in a bad state.
    fn chunks(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
