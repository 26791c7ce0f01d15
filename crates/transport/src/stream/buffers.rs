//! Allocation of the memory of stream data, and its conversion to `Bytes`.

use bytes::Bytes;
use courser_base::foreign::ForeignBytes;

use super::StreamsConfig;
use super::chunk_pool::ChunkPool;
use super::config::max_gaps;
use super::send_budget::SendBudget;

/// The memory of the data of all streams: provides buffers, and counts what they hold.
///
/// Each connection keeps its own small buffers; all connections share the pool of 64 KiB ones.
///
/// A buffer is never much larger than the bytes it is about to hold, so that memory follows the
/// bytes written or received. Only past [`BULK`] are the pool's chunks used.
#[derive(Debug)]
pub(super) struct Buffers {
    pool: ChunkPool,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    /// A spare buffer between [`SPARE`] and [`BULK`], for streams with bursts of that size.
    medium: Vec<u8>,
    received: Received,
    /// Gaps that all streams together may have while the connection's window is small.
    max_gaps: usize,
    pub(super) sending: SendBudget,
}

/// The memory of received but unread bytes in all streams of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Received {
    /// The allocated bytes, whether filled or not.
    pub(super) capacity: usize,
    pub(super) bytes: usize,
    /// Gaps below the largest received bytes.
    pub(super) gaps: usize,
}

impl Received {
    /// Returns true if, with a buffer of `capacity` for `needed` bytes, all buffers stay within
    /// twice their bytes plus [`MAX_UNUSED`] (limit K97).
    fn fits(self, capacity: usize, needed: usize) -> bool {
        self.capacity + capacity <= 2 * (self.bytes + needed) + MAX_UNUSED
    }
}

impl Buffers {
    pub(super) fn new(pool: ChunkPool, config: &StreamsConfig) -> Self {
        Self {
            pool,
            spare: Vec::new(),
            spare_bytes: 0,
            medium: Vec::new(),
            received: Received::default(),
            max_gaps: config.max_gaps,
            sending: SendBudget::new(config),
        }
    }

    /// Returns an empty buffer for at least `capacity` bytes, 64 KiB at most.
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
            return Vec::with_capacity(capacity.max(MIN_BUFFER));
        };
        self.spare_bytes -= buffer.capacity();
        buffer.reserve(capacity);
        buffer
    }

    /// Returns an empty buffer for `needed` received bytes, with a capacity of `preferred` unless the
    /// connection already holds too much unused memory.
    ///
    /// Bulk data fills its chunks before more are allocated. But a peer must not be able to claim a
    /// chunk for a few bytes on each of its streams, just because they carried bulk data before.
    pub(super) fn take_received(&mut self, needed: usize, preferred: usize) -> Vec<u8> {
        let is_bulk = preferred > BULK && self.received.fits(ChunkPool::CHUNK, needed);
        let is_fine = is_bulk || preferred <= BULK && self.received.fits(preferred, needed);
        let capacity = if is_fine { preferred } else { needed };
        let mut buffer = self.take(capacity);
        // A spare buffer may be much larger.
        if !is_bulk && !self.received.fits(buffer.capacity(), needed) {
            self.give(buffer);
            buffer = Vec::with_capacity(needed.max(MIN_BUFFER));
        }
        self.received.capacity += buffer.capacity();
        buffer
    }

    /// Appends to a buffer from [`Buffers::take_received`], and may move it.
    pub(super) fn extend_received(&mut self, buffer: &mut Vec<u8>, data: &[u8]) {
        let before = buffer.capacity();
        buffer.extend_from_slice(data);
        self.received.capacity += buffer.capacity() - before;
    }

    /// Returns a buffer from [`Buffers::take_received`].
    pub(super) fn give_received(&mut self, buffer: Vec<u8>) {
        self.received.capacity -= buffer.capacity();
        self.give(buffer);
    }

    /// Returns the memory of a chunk of received bytes, unless it is still shared. `capacity` is
    /// the capacity of the buffer that the chunk began as.
    pub(super) fn give_received_chunk(&mut self, chunk: Chunk, capacity: usize) {
        self.received.capacity -= capacity;
        self.give_chunk(chunk);
    }

    /// Counts received bytes that were stored.
    #[inline]
    pub(super) fn on_stored(&mut self, len: usize) {
        self.received.bytes += len;
    }

    /// Counts received bytes that were read or discarded.
    #[inline]
    pub(super) fn on_taken(&mut self, len: usize) {
        debug_assert!(
            len <= self.received.bytes,
            "more bytes read than were stored"
        );
        self.received.bytes = self.received.bytes.saturating_sub(len);
    }

    /// Returns true if all streams together may have one more gap. `window` is the size of the
    /// connection's receive window.
    #[inline]
    pub(super) fn may_open_gap(&self, window: u64) -> bool {
        self.received.gaps < max_gaps(self.max_gaps, window)
    }

    /// Counts a new gap in received bytes.
    pub(super) fn on_gap_opened(&mut self) {
        self.received.gaps += 1;
    }

    /// Counts gaps in received bytes that were filled or dropped.
    pub(super) fn on_gaps_closed(&mut self, count: u32) {
        self.received.gaps -= count as usize;
    }

    /// Resets the counts when all streams are dropped at once.
    pub(super) fn reset_counts(&mut self) {
        self.received = Received::default();
        self.sending.clear();
    }

    /// Returns the memory of received bytes.
    #[cfg(test)]
    pub(super) fn received(&self) -> Received {
        self.received
    }

    /// Returns the bytes kept for sending, the memory of received bytes, and that of buffers that are
    /// kept for reuse.
    pub(super) fn memory(&self) -> u64 {
        let buffers = self.received.capacity + self.spare_bytes + self.medium.capacity();
        self.sending.retained() + buffers as u64
    }

    /// Keeps a returned buffer for reuse, or frees it.
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

    /// Returns the memory of a chunk, unless it is still shared.
    pub(super) fn give_chunk(&mut self, chunk: Chunk) {
        if let Chunk::Open(buffer) = chunk {
            self.give(buffer);
        }
    }

    /// Converts a buffer to `Bytes` without copying. A pooled one returns to the pool when the last
    /// `Bytes` is dropped, on any thread.
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

    /// Frees the kept buffers, for a connection that is idle or closed.
    pub(super) fn shrink(&mut self) {
        (self.spare, self.medium) = (Vec::new(), Vec::new());
        self.spare_bytes = 0;
    }
}

/// Returns the capacity of the next buffer behind one of `previous` bytes, for `needed` bytes.
///
/// Doubling keeps unused memory below used memory, and the number of buffers small.
pub(super) fn next_capacity(previous: usize, needed: usize) -> usize {
    needed.max(previous.saturating_mul(2)).min(ChunkPool::CHUNK)
}

/// A piece of stream data in memory.
#[derive(Debug)]
pub(super) enum Chunk {
    /// Owned memory: bytes may be appended up to its capacity.
    Open(Vec<u8>),
    /// Our own memory, shared with the application and never written again.
    Shared(Bytes),
    /// Memory of the application, whose drop may run its code.
    Foreign(ForeignBytes),
}

impl Chunk {
    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Open(buffer) => buffer,
            Self::Shared(bytes) => bytes,
            Self::Foreign(bytes) => bytes,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Returns true if the memory is not shared.
    #[inline]
    pub(super) const fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// Returns how many bytes can be appended without a reallocation.
    #[inline]
    pub(super) fn spare(&self) -> usize {
        match self {
            Self::Open(buffer) => buffer.capacity() - buffer.len(),
            Self::Shared(_) | Self::Foreign(_) => 0,
        }
    }

    /// Appends as many bytes of `data` as fit, and returns how many.
    #[inline]
    pub(super) fn fill(&mut self, data: &[u8]) -> usize {
        let Self::Open(buffer) = self else { return 0 };
        let len = data.len().min(buffer.capacity() - buffer.len());
        buffer.extend_from_slice(&data[..len]);
        len
    }

    /// Drops all bytes but the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        match self {
            Self::Open(buffer) => buffer.truncate(len),
            Self::Shared(bytes) => bytes.truncate(len),
            Self::Foreign(bytes) => bytes.truncate(len),
        }
    }

    /// Returns the memory behind the chunk.
    pub(super) fn capacity(&self) -> usize {
        match self {
            Self::Open(buffer) => buffer.capacity(),
            Self::Shared(bytes) => bytes.len(),
            Self::Foreign(bytes) => bytes.len(),
        }
    }
}

/// A pooled buffer whose slices are `Bytes`.
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

/// Buffers above this size are whole chunks of the pool. Because each buffer is twice as large as
/// the one before, the earlier buffers hold about as much by then: even with a chunk that holds a single byte,
/// the memory is at most three times the bytes.
const BULK: usize = 32 << 10;
/// Largest buffer kept for the next small stream.
const SPARE: usize = 4 << 10;
/// Total of the small buffers kept per connection: enough for 100 requests of 64 bytes, twice.
const SPARE_TOTAL: usize = 16 << 10;
/// Unused bytes allowed in the buffers of received data, in addition to one unused byte for each used one:
/// enough for four streams that begin to receive bulk data at once (limit K97).
const MAX_UNUSED: usize = 256 << 10;
/// The smallest buffer: allocators have hardly any smaller blocks.
const MIN_BUFFER: usize = 64;

#[cfg(test)]
mod tests;
