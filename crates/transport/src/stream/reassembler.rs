//! Reassembly of a stream from bytes that arrive in any order. RFC 9000 §2.2.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};

use super::buffers::{Buffers, Chunk, next_capacity};
use super::event::Stored;

/// The received and unread bytes of one stream.
///
/// `ready` holds the bytes in order, `pending` those past a gap. The first bytes to arrive for an
/// offset are kept; later ones are ignored. In order, a packet costs one copy to the end of a
/// chunk. Past a gap each chunk grows at its end, or at its front while it is small. Touching
/// chunks are joined while they are small. So memory is usually twice
/// the bytes received and at most four times, plus a fixed cost per gap, whose number the owner bounds
/// (attack A26). A large offset costs nothing. Only a few streams that receive bulk data may hold a chunk
/// of the pool for the bytes of a single packet ([`Buffers::take_received`]).
///
/// When bytes past a gap are read ([`Reassembler::read_unordered`]), an entry without data takes their place,
/// so that repeated bytes are recognized. Adjacent entries without data are joined, so gaps and chunks with
/// data bound their number.
#[derive(Debug, Default)]
pub(super) struct Reassembler {
    /// Offset of the first unread byte.
    read: u64,
    /// Offset of the first missing byte.
    end: u64,
    ready: VecDeque<Ready>,
    /// Chunks past a gap: ascending, disjoint, all past `end`.
    pending: VecDeque<Pending>,
    /// Number of gaps below the largest received byte, each followed by at least one chunk.
    gaps: u32,
    /// The offset at which `ready` was last empty.
    drained: u64,
    /// Bytes stored so far, without repeated ones.
    stored: u64,
    /// Bytes that usually arrive between two reads that leave `ready` empty.
    usual: u32,
    /// Bytes between `read` and `end` that were read past a gap before it was filled.
    skipped: u64,
}

#[derive(Debug)]
struct Ready {
    /// Offset of the first unread byte of the chunk in the stream.
    offset: u64,
    /// Bytes at the front of the chunk that were read.
    taken: usize,
    /// Capacity of the chunk's buffer, all of which stays allocated until the last byte is read.
    capacity: usize,
    chunk: Chunk,
}

impl Ready {
    fn new(offset: u64, buffer: Vec<u8>) -> Self {
        Self {
            offset,
            taken: 0,
            capacity: buffer.capacity(),
            chunk: Chunk::Open(buffer),
        }
    }
}

#[derive(Debug)]
struct Pending {
    offset: u64,
    /// The bytes. Empty if they were read already.
    data: Vec<u8>,
    /// The number of bytes, if they were read already, otherwise 0.
    read: u64,
}

/// Bytes that were read in any order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Offset of the first byte in the stream.
    pub(super) offset: u64,
    pub(super) bytes: Bytes,
    /// True if all bytes before had arrived.
    pub(super) is_ordered: bool,
}

impl Pending {
    fn end(&self) -> u64 {
        self.offset + self.data.len() as u64 + self.read
    }

    const fn is_read(&self) -> bool {
        self.read > 0
    }
}

impl Reassembler {
    /// Returns the offset of the first missing byte: everything below has arrived.
    #[inline]
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Returns the offset of the first unread byte.
    #[inline]
    pub(super) const fn read_to(&self) -> u64 {
        self.read
    }

    /// Returns the bytes that can be read in order now.
    #[inline]
    pub(super) const fn readable(&self) -> u64 {
        self.end - self.read - self.skipped
    }

    /// Returns true if there are bytes to read, in order or past a gap.
    pub(super) fn has_unread(&self) -> bool {
        self.readable() > 0 || self.pending.iter().any(|chunk| !chunk.is_read())
    }

    /// Returns the number of gaps below the largest received byte.
    #[inline]
    pub(super) const fn gaps(&self) -> usize {
        self.gaps as usize
    }

    /// Returns the bytes stored so far, including those that were read.
    #[inline]
    pub(super) const fn stored(&self) -> u64 {
        self.stored
    }

    /// Stores received bytes.
    ///
    /// Refuses them, and stores none, if they would open one more gap and `may_open_gap` is false.
    /// Bytes adjacent to stored ones are always accepted.
    #[inline]
    pub(super) fn insert(
        &mut self,
        offset: u64,
        data: &[u8],
        may_open_gap: bool,
        buffers: &mut Buffers,
    ) -> Stored {
        if offset == self.end && self.pending.is_empty() {
            self.append(data, buffers);
            return Stored::Kept;
        }
        self.insert_unordered(offset, data, may_open_gap, buffers)
    }

    #[inline(never)]
    fn insert_unordered(
        &mut self,
        offset: u64,
        data: &[u8],
        may_open_gap: bool,
        buffers: &mut Buffers,
    ) -> Stored {
        if offset > self.end {
            return self.insert_pending(offset, data, may_open_gap, buffers);
        }
        let known = length(self.end - offset).min(data.len());
        self.insert_at_end(&data[known..], buffers);
        Stored::Kept
    }

    /// Appends bytes at the end of the ordered ones, and the pending chunks that become adjacent.
    fn insert_at_end(&mut self, mut data: &[u8], buffers: &mut Buffers) {
        while !data.is_empty() {
            let Some(next) = self.pending.front() else {
                return self.append(data, buffers);
            };
            let (new, rest) = data.split_at(length(next.offset - self.end).min(data.len()));
            self.append(new, buffers);
            let known = self.absorb_pending(buffers).min(rest.len());
            data = &rest[known..];
        }
    }

    /// Moves the pending chunks adjacent to the ordered bytes to `ready`, and returns how many bytes these are.
    fn absorb_pending(&mut self, buffers: &mut Buffers) -> usize {
        let before = self.end;
        while self
            .pending
            .front()
            .is_some_and(|next| next.offset == self.end)
            && let Some(next) = self.pending.pop_front()
        {
            if self.end == before {
                self.close_gap(buffers);
            }
            let offset = self.end;
            self.end = next.end();
            if next.is_read() {
                self.skip(next.read, buffers);
                continue;
            }
            match self.ready.back_mut() {
                Some(last) if next.data.len() <= SMALL.min(last.chunk.spare()) => {
                    last.chunk.fill(&next.data);
                    buffers.give_received(next.data);
                }
                _ => self.ready.push_back(Ready::new(offset, next.data)),
            }
        }
        length(self.end - before)
    }

    /// Moves `end` past pending bytes that were read already.
    #[cold]
    fn skip(&mut self, len: u64, buffers: &Buffers) {
        // Later bytes are not adjacent to those of the last chunk, and must not be appended to it.
        if let Some(last) = self.ready.back_mut()
            && let Chunk::Open(buffer) = &mut last.chunk
        {
            last.chunk = Chunk::Shared(buffers.share(std::mem::take(buffer)));
        }
        self.skipped += len;
        self.pass_skipped();
    }

    /// Moves the offset of the first unread byte past bytes that were read already.
    fn pass_skipped(&mut self) {
        let next = self.ready.front().map_or(self.end, |front| front.offset);
        self.skipped -= next - self.read;
        self.read = next;
    }

    /// Copies bytes to the end of the ordered ones.
    #[inline]
    fn append(&mut self, mut data: &[u8], buffers: &mut Buffers) {
        self.end += data.len() as u64;
        self.stored += data.len() as u64;
        buffers.on_stored(data.len());
        if let Some(last) = self.ready.back_mut() {
            let filled = last.chunk.fill(data);
            data = &data[filled..];
        }
        if !data.is_empty() {
            self.append_chunk(data, buffers);
        }
    }

    fn append_chunk(&mut self, data: &[u8], buffers: &mut Buffers) {
        let preferred = match self.ready.back() {
            Some(last) => next_capacity(last.chunk.capacity(), data.len()),
            // Few bytes must not claim a buffer as large as earlier bulk data.
            None if data.len() < WORTH_BULK => data.len(),
            None => data.len().max(self.usual as usize),
        };
        let mut buffer = buffers.take_received(data.len(), preferred);
        buffers.extend_received(&mut buffer, data);
        let offset = self.end - data.len() as u64;
        if self.ready.capacity() == 0 {
            // The queue would begin with four entries, but a request rarely needs two.
            self.ready.reserve_exact(1);
        }
        self.ready.push_back(Ready::new(offset, buffer));
    }

    fn insert_pending(
        &mut self,
        mut offset: u64,
        mut data: &[u8],
        may_open_gap: bool,
        buffers: &mut Buffers,
    ) -> Stored {
        // The first chunk that the data touches, overlaps or precedes.
        let mut at = self.pending.partition_point(|chunk| chunk.end() < offset);
        let end = offset + data.len() as u64;
        let is_apart = self.pending.get(at).is_none_or(|chunk| chunk.offset > end);
        if is_apart && !may_open_gap {
            return Stored::Refused;
        }
        while !data.is_empty() {
            let Some(chunk) = self.pending.get(at) else {
                self.insert_chunk(at, offset, data, buffers);
                break;
            };
            let new = if chunk.offset > offset {
                let new = length(chunk.offset - offset).min(data.len());
                at = self.insert_before(at, offset, &data[..new], buffers);
                new
            } else {
                let known = length(chunk.end() - offset).min(data.len());
                (offset, data) = (offset + known as u64, &data[known..]);
                let hole = self
                    .pending
                    .get(at + 1)
                    .map_or(u64::MAX, |next| next.offset)
                    - offset;
                let new = length(hole.min(data.len() as u64));
                at = self.extend(at, &data[..new], buffers);
                new
            };
            (offset, data) = (offset + new as u64, &data[new..]);
            at += usize::from(self.pending[at].end() <= offset);
        }
        Stored::Kept
    }

    /// Inserts a new chunk behind a new gap.
    fn insert_chunk(&mut self, at: usize, offset: u64, data: &[u8], buffers: &mut Buffers) {
        self.stored += data.len() as u64;
        let mut buffer = buffers.take_received(data.len(), data.len());
        buffers.on_stored(data.len());
        buffers.extend_received(&mut buffer, data);
        self.pending.insert(
            at,
            Pending {
                offset,
                data: buffer,
                read: 0,
            },
        );
        self.gaps += 1;
        buffers.on_gap_opened();
    }

    fn close_gap(&mut self, buffers: &mut Buffers) {
        self.gaps -= 1;
        buffers.on_gaps_closed(1);
    }

    /// Inserts bytes before chunk `at`, which may touch it but no earlier chunk. Returns the index
    /// of the chunk that was `at`.
    fn insert_before(
        &mut self,
        at: usize,
        offset: u64,
        data: &[u8],
        buffers: &mut Buffers,
    ) -> usize {
        let next = &mut self.pending[at];
        if next.offset != offset + data.len() as u64 {
            self.insert_chunk(at, offset, data, buffers);
            return at + 1;
        }
        if !next.is_read() && next.data.len() + data.len() <= SMALL {
            self.stored += data.len() as u64;
            buffers.on_stored(data.len());
            next.offset = offset;
            buffers.extend_received(&mut next.data, data);
            next.data.rotate_right(data.len());
            return at;
        }
        self.insert_chunk(at, offset, data, buffers);
        self.close_gap(buffers);
        at + 1
    }

    /// Appends bytes to chunk `at`, at most up to the next one. Returns the index of the chunk that
    /// ends with them.
    fn extend(&mut self, mut at: usize, data: &[u8], buffers: &mut Buffers) -> usize {
        if data.is_empty() {
            return at;
        }
        self.stored += data.len() as u64;
        buffers.on_stored(data.len());
        let chunk = &mut self.pending[at];
        let room = chunk.data.capacity() - chunk.data.len();
        let fits = if chunk.is_read() {
            0
        } else if chunk.data.len() + data.len() <= SMALL {
            data.len()
        } else {
            room
        };
        let (near, far) = data.split_at(fits.min(data.len()));
        buffers.extend_received(&mut chunk.data, near);
        if !far.is_empty() {
            let preferred = next_capacity(chunk.data.capacity(), far.len());
            let mut buffer = buffers.take_received(far.len(), preferred);
            buffers.extend_received(&mut buffer, far);
            let far = Pending {
                offset: chunk.end(),
                data: buffer,
                read: 0,
            };
            at += 1;
            self.pending.insert(at, far);
        }
        self.join_next(at, buffers);
        at
    }

    /// Removes the gap behind chunk `at` if it was just filled.
    fn join_next(&mut self, at: usize, buffers: &mut Buffers) {
        let end = self.pending[at].end();
        if self
            .pending
            .get(at + 1)
            .is_none_or(|next| next.offset != end)
        {
            return;
        }
        self.close_gap(buffers);
        let next = &self.pending[at + 1];
        if next.is_read() {
            return;
        }
        let len = next.data.len();
        let chunk = &self.pending[at].data;
        let room = chunk.capacity() - chunk.len();
        if len <= SMALL && (len <= room || chunk.len() + len <= SMALL) {
            let next = self.pending.remove(at + 1).expect("examined above");
            buffers.extend_received(&mut self.pending[at].data, &next.data);
            buffers.give_received(next.data);
        }
    }

    /// Removes ordered bytes, copies them to `out`, and returns how many.
    pub(super) fn read(&mut self, out: &mut [u8], buffers: &mut Buffers) -> usize {
        let mut done = 0;
        while let Some(front) = self.ready.front_mut() {
            let unread = &front.chunk.as_slice()[front.taken..];
            let len = unread.len().min(out.len() - done);
            out[done..done + len].copy_from_slice(&unread[..len]);
            done += len;
            let is_used_up = len == unread.len();
            front.taken += len;
            front.offset += len as u64;
            if !is_used_up {
                break;
            }
            self.pop_ready(buffers);
        }
        self.on_read(done, buffers);
        done
    }

    /// Removes up to `max` ordered bytes. Does not copy them if their chunk is at least half full.
    pub(super) fn read_chunk(&mut self, max: usize, buffers: &mut Buffers) -> Option<Bytes> {
        let front = self.ready.front_mut().filter(|_| max > 0)?;
        let len = (front.chunk.len() - front.taken).min(max);
        front.offset += len as u64;
        if let Chunk::Open(buffer) = &mut front.chunk {
            // The application must not hold the memory of a chunk that is mostly empty.
            if buffer.len() < buffer.capacity() / 2 {
                let bytes = Bytes::copy_from_slice(&buffer[front.taken..][..len]);
                front.taken += len;
                if front.taken == front.chunk.len() {
                    self.pop_ready(buffers);
                }
                self.on_read(len, buffers);
                return Some(bytes);
            }
            front.chunk = Chunk::Shared(buffers.share(std::mem::take(buffer)));
        }
        let Chunk::Shared(bytes) = &mut front.chunk else {
            return None;
        };
        bytes.advance(std::mem::take(&mut front.taken));
        let bytes = bytes.split_to(len);
        if front.chunk.len() == 0 {
            self.pop_ready(buffers);
        }
        self.on_read(len, buffers);
        Some(bytes)
    }

    /// Removes up to `max` bytes, at least one, with their offset: first those in order, then those past
    /// gaps. Each byte is returned once.
    pub(super) fn read_unordered(&mut self, max: usize, buffers: &mut Buffers) -> Option<Piece> {
        let max = max.max(1);
        if let Some(front) = self.ready.front() {
            let offset = front.offset;
            let bytes = self.read_chunk(max, buffers)?;
            return Some(Piece {
                offset,
                bytes,
                is_ordered: true,
            });
        }
        let at = self.pending.iter().position(|chunk| !chunk.is_read())?;
        let (offset, bytes) = self.take_pending(at, max, buffers);
        Some(Piece {
            offset,
            bytes,
            is_ordered: false,
        })
    }

    /// Removes up to `max` bytes of chunk `at`, and leaves an entry in their place.
    fn take_pending(&mut self, at: usize, max: usize, buffers: &mut Buffers) -> (u64, Bytes) {
        let chunk = &mut self.pending[at];
        let offset = chunk.offset;
        let len = chunk.data.len().min(max);
        buffers.on_taken(len);
        if len < chunk.data.len() {
            let bytes = Bytes::copy_from_slice(&chunk.data[..len]);
            chunk.data.drain(..len);
            chunk.offset += len as u64;
            let before = Pending {
                offset,
                data: Vec::new(),
                read: len as u64,
            };
            self.pending.insert(at, before);
            self.join_read(at);
            return (offset, bytes);
        }
        let data = std::mem::take(&mut chunk.data);
        chunk.read = len as u64;
        let capacity = data.capacity();
        // As in `read_chunk`.
        let bytes = if len < capacity / 2 {
            let bytes = Bytes::copy_from_slice(&data);
            buffers.give_received(data);
            bytes
        } else {
            let bytes = buffers.share(data);
            buffers.give_received_chunk(Chunk::Shared(Bytes::new()), capacity);
            bytes
        };
        self.join_read(at + 1);
        self.join_read(at);
        (offset, bytes)
    }

    /// Joins entry `at` to the one before if they touch and neither has data.
    fn join_read(&mut self, at: usize) {
        let Some((entry, before)) = self
            .pending
            .get(at)
            .zip(self.pending.get(at.wrapping_sub(1)))
        else {
            return;
        };
        if entry.is_read() && before.is_read() && before.end() == entry.offset {
            let read = entry.read;
            self.pending[at - 1].read += read;
            self.pending.remove(at);
        }
    }

    fn pop_ready(&mut self, buffers: &mut Buffers) {
        if let Some(ready) = self.ready.pop_front() {
            buffers.give_received_chunk(ready.chunk, ready.capacity);
        }
    }

    fn on_read(&mut self, len: usize, buffers: &mut Buffers) {
        self.read += len as u64;
        if self.skipped > 0 {
            self.pass_skipped();
        }
        buffers.on_taken(len);
        if self.ready.is_empty() {
            let gathered = u32::try_from(self.read - self.drained).unwrap_or(u32::MAX);
            self.usual = gathered.max(self.usual / 2);
            self.drained = self.read;
        }
    }

    /// Drops all bytes, in order or not, and accepts no more.
    pub(super) fn discard(&mut self, buffers: &mut Buffers) {
        for ready in self.ready.drain(..) {
            buffers.on_taken(ready.chunk.len() - ready.taken);
            buffers.give_received_chunk(ready.chunk, ready.capacity);
        }
        for pending in self.pending.drain(..) {
            buffers.on_taken(pending.data.len());
            buffers.give_received(pending.data);
        }
        buffers.on_gaps_closed(std::mem::take(&mut self.gaps));
        self.read = self.end;
        self.skipped = 0;
    }

    /// Frees the spare capacity of the lists.
    pub(super) fn shrink(&mut self) {
        self.ready.shrink_to_fit();
        self.pending.shrink_to_fit();
    }

    /// Resets this to a new reassembler that keeps the memory of its empty lists.
    pub(super) fn recycle(&mut self, buffers: &mut Buffers) {
        self.discard(buffers);
        self.ready.shrink_to(KEPT_ENTRIES);
        self.pending.shrink_to(KEPT_ENTRIES);
        (self.read, self.end, self.drained, self.usual) = (0, 0, 0, 0);
    }

    /// Returns the memory held, in bytes.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        let ready: usize = self.ready.iter().map(|ready| ready.capacity).sum();
        let pending: usize = self
            .pending
            .iter()
            .map(|pending| pending.data.capacity())
            .sum();
        let lists = self.ready.capacity() * size_of::<Ready>()
            + self.pending.capacity() * size_of::<Pending>();
        ready + pending + lists
    }
}

/// Converts a distance between received bytes to `usize`. It fits, because it is bounded by bytes in memory.
fn length(distance: u64) -> usize {
    usize::try_from(distance).unwrap_or(usize::MAX)
}

/// Chunks up to this size are copied to join others: that is cheap, and a flood of tiny pieces leaves few
/// chunks.
const SMALL: usize = 2 << 10;
/// Fewer bytes than this get a buffer of their own size.
const WORTH_BULK: usize = 1 << 10;
/// Capacity that the lists of a recycled stream keep, in chunks.
const KEPT_ENTRIES: usize = 8;

#[cfg(test)]
mod tests;
