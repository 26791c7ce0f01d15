//! Where the memory of stream data comes from, and how it becomes `Bytes`.

use bytes::Bytes;

use super::chunk_pool::ChunkPool;

/// Hands out buffers: small ones are kept by the connection, 64 KiB ones shared by all.
///
/// A buffer is never much larger than what it is about to hold, so that memory follows the
/// bytes that were written or received; only past [`BULK`] the pool's chunks are used.
#[derive(Debug)]
pub(super) struct Buffers {
    pool: ChunkPool,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    /// One buffer of a size in between, for streams whose bursts are that large.
    medium: Vec<u8>,
    received: Received,
}

/// The memory of received bytes that nobody has read, in all streams of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Received {
    /// Capacity of their buffers.
    pub(super) capacity: usize,
    /// The bytes.
    pub(super) bytes: usize,
}

impl Received {
    /// True if a buffer of `capacity` for `needed` bytes keeps all buffers within twice what is in
    /// them and [`MAX_UNUSED`] (limit K97).
    fn has_room(self, capacity: usize, needed: usize) -> bool {
        self.capacity + capacity <= 2 * (self.bytes + needed) + MAX_UNUSED
    }
}

impl Buffers {
    pub(super) fn new(pool: ChunkPool) -> Self {
        Self {
            pool,
            spare: Vec::new(),
            spare_bytes: 0,
            medium: Vec::new(),
            received: Received::default(),
        }
    }

    /// Where its large buffers come from.
    pub(super) fn pool(&self) -> ChunkPool {
        self.pool.clone()
    }

    /// An empty buffer with room for at least `capacity` bytes, 64 KiB at most.
    pub(super) fn take(&mut self, capacity: usize) -> Vec<u8> {
        if capacity > BULK {
            return self.pool.take();
        }
        if capacity > SPARE {
            let mut buffer = std::mem::take(&mut self.medium);
            buffer.reserve_exact(capacity);
            return buffer;
        }
        let Some(mut buffer) = self.spare.pop() else {
            return Vec::with_capacity(capacity.max(SMALLEST));
        };
        self.spare_bytes -= buffer.capacity();
        buffer.reserve(capacity);
        buffer
    }

    /// An empty buffer for `needed` received bytes, with room for `wanted` if the connection does
    /// not hold too much unused room already.
    ///
    /// Bulk data fills its chunks before there is more. But a peer must not have each of its streams
    /// claim a chunk with a few bytes, only because bulk data came on them before.
    pub(super) fn take_received(&mut self, needed: usize, wanted: usize) -> Vec<u8> {
        let is_bulk = wanted > BULK && self.received.has_room(ChunkPool::CHUNK, needed);
        let is_fine = is_bulk || wanted <= BULK && self.received.has_room(wanted, needed);
        let capacity = if is_fine { wanted } else { needed };
        let mut buffer = self.take(capacity);
        // A spare one may be much larger.
        if !is_bulk && !self.received.has_room(buffer.capacity(), needed) {
            self.give(buffer);
            buffer = Vec::with_capacity(needed.max(SMALLEST));
        }
        self.received.capacity += buffer.capacity();
        buffer
    }

    /// Appends to a buffer from [`Buffers::take_received`], which may move it.
    pub(super) fn extend_received(&mut self, buffer: &mut Vec<u8>, data: &[u8]) {
        let before = buffer.capacity();
        buffer.extend_from_slice(data);
        self.received.capacity += buffer.capacity() - before;
    }

    /// Takes a buffer from [`Buffers::take_received`] back.
    pub(super) fn give_received(&mut self, buffer: Vec<u8>) {
        self.received.capacity -= buffer.capacity();
        self.give(buffer);
    }

    /// Takes the memory of a chunk of received bytes back, if nobody shares it. `capacity` is that
    /// of the buffer it began as.
    pub(super) fn give_received_chunk(&mut self, chunk: Chunk, capacity: usize) {
        self.received.capacity -= capacity;
        self.give_chunk(chunk);
    }

    /// Received bytes were stored.
    #[inline]
    pub(super) fn on_stored(&mut self, len: usize) {
        self.received.bytes += len;
    }

    /// Received bytes were read or discarded.
    #[inline]
    pub(super) fn on_taken(&mut self, len: usize) {
        debug_assert!(len <= self.received.bytes, "taken and never stored");
        self.received.bytes = self.received.bytes.saturating_sub(len);
    }

    /// All streams are gone, without a word for each.
    pub(super) fn forget_received(&mut self) {
        self.received = Received::default();
    }

    /// Returns the memory of received bytes.
    #[cfg(test)]
    pub(super) fn received(&self) -> Received {
        self.received
    }

    /// Memory of received bytes, and of the buffers that are kept for the next ones.
    pub(super) fn memory(&self) -> usize {
        self.received.capacity + self.spare_bytes + self.medium.capacity()
    }

    /// Takes a buffer back to use it again, or frees it.
    pub(super) fn give(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if capacity == ChunkPool::CHUNK {
            return self.pool.give(buffer);
        }
        buffer.clear();
        if capacity > SPARE {
            if capacity <= BULK {
                self.medium = buffer;
            }
        } else if capacity > 0 && self.spare_bytes + capacity <= SPARE_TOTAL {
            self.spare_bytes += capacity;
            self.spare.push(buffer);
        }
    }

    /// Takes the memory of a chunk back, if nobody shares it.
    pub(super) fn give_chunk(&mut self, chunk: Chunk) {
        if let Chunk::Open(buffer) = chunk {
            self.give(buffer);
        }
    }

    /// Makes `Bytes` of a buffer without copying. A pooled one goes back to the pool when the
    /// last `Bytes` is dropped, on whichever thread that happens.
    pub(super) fn share(&self, buffer: Vec<u8>) -> Bytes {
        if buffer.capacity() == ChunkPool::CHUNK {
            Bytes::from_owner(Pooled {
                buffer,
                pool: self.pool.clone(),
            })
        } else {
            Bytes::from(buffer)
        }
    }

    /// Frees the buffers kept: for a connection without streams, or one that is closed.
    pub(super) fn shrink(&mut self) {
        (self.spare, self.medium) = (Vec::new(), Vec::new());
        self.spare_bytes = 0;
    }
}

/// The room for the next buffer behind one of `previous` bytes, when `needed` bytes are there.
///
/// Doubling keeps unused memory below what is used, and the number of buffers small.
pub(super) fn next_capacity(previous: usize, needed: usize) -> usize {
    needed.max(previous.saturating_mul(2)).min(ChunkPool::CHUNK)
}

/// A piece of stream data in memory.
#[derive(Debug)]
pub(super) enum Chunk {
    /// Ours alone: more may be appended while there is room.
    Open(Vec<u8>),
    /// Shared with the application: never written again.
    Shared(Bytes),
}

impl Chunk {
    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Open(buffer) => buffer,
            Self::Shared(bytes) => bytes,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// True if it is ours alone.
    #[inline]
    pub(super) const fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// Bytes that can be appended without moving the others.
    #[inline]
    pub(super) fn room(&self) -> usize {
        match self {
            Self::Open(buffer) => buffer.capacity() - buffer.len(),
            Self::Shared(_) => 0,
        }
    }

    /// Appends the start of `data` as far as there is room; returns how much that was.
    #[inline]
    pub(super) fn fill(&mut self, data: &[u8]) -> usize {
        let Self::Open(buffer) = self else { return 0 };
        let len = data.len().min(buffer.capacity() - buffer.len());
        buffer.extend_from_slice(&data[..len]);
        len
    }

    /// Memory behind the chunk.
    pub(super) fn capacity(&self) -> usize {
        match self {
            Self::Open(buffer) => buffer.capacity(),
            Self::Shared(bytes) => bytes.len(),
        }
    }
}

/// A pooled buffer that `Bytes` are slices of.
struct Pooled {
    buffer: Vec<u8>,
    pool: ChunkPool,
}

impl AsRef<[u8]> for Pooled {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.pool.give(std::mem::take(&mut self.buffer));
    }
}

/// Above this a buffer is a whole chunk of the pool. Since buffers double, about as much lies
/// in smaller ones by then, so that a chunk with one byte in it is three times what it joins.
const BULK: usize = 32 << 10;
/// Buffers up to this size are kept for the next small stream...
const SPARE: usize = 4 << 10;
/// ... up to this many bytes per connection, which is twice 100 requests of a cache line.
const SPARE_TOTAL: usize = 16 << 10;
/// Room without bytes in the buffers of received data, beside as much as there are bytes: what four
/// streams take that begin to receive bulk data at once (limit K97).
const MAX_UNUSED: usize = 256 << 10;
/// An allocator's smallest blocks are about this large anyway.
const SMALLEST: usize = 64;

#[cfg(test)]
mod tests;
