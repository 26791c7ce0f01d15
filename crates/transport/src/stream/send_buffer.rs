//! The buffer for stream data until the peer has acknowledged it.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Buf, Bytes};
use courser_base::RangeSet;
use courser_base::foreign::ForeignBytes;

use super::buffers::{Buffers, Chunk, next_capacity};

/// The bytes written to one stream and not acknowledged yet.
///
/// The bytes lie in a queue of chunks. Each byte stays where `write` stored it until it is
/// acknowledged, so a retransmission cannot differ (RFC 9000 §2.2). Lost data is a set of spans, never a
/// stored packet. The end of the stream counts as one more position behind the last byte: a
/// FIN is sent, lost and acknowledged like a byte.
#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    chunks: VecDeque<Part>,
    /// Index of the chunk that contains the first position never sent, or of one before it.
    cursor: usize,
    /// All lower positions are acknowledged, and their memory is freed.
    acked_to: u64,
    /// First position never sent.
    sent_to: u64,
    /// Number of bytes written.
    end: u64,
    /// True if no more will be written: the position `end` is the FIN.
    is_finished: bool,
    /// Acknowledged positions past `acked_to`.
    acked: RangeSet,
    /// Positions to send again, none of which are acknowledged.
    lost: RangeSet,
}

#[derive(Debug)]
struct Part {
    offset: u64,
    chunk: Chunk,
}

impl Part {
    #[inline]
    fn end(&self) -> u64 {
        self.offset + self.chunk.len() as u64
    }
}

/// A part of a stream: `len` bytes from `offset` on, followed by the end if `fin`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) fin: bool,
}

impl Span {
    fn positions(self) -> Range<u64> {
        self.offset..self.offset + self.len + u64::from(self.fin)
    }
}

impl SendBuffer {
    /// Returns the bytes sent at least once: the final size if the stream is reset now.
    pub(super) fn sent(&self) -> u64 {
        self.sent_to.min(self.end)
    }

    /// Returns the bytes written.
    pub(super) const fn written(&self) -> u64 {
        self.end
    }

    /// Returns the bytes acknowledged up to the first gap.
    #[inline]
    pub(super) fn acked(&self) -> u64 {
        self.acked_to.min(self.end)
    }

    /// Returns the bytes written and never sent.
    #[inline]
    pub(super) const fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.sent_to)
    }

    /// Returns the bytes kept because bytes below or among them are not acknowledged.
    #[inline]
    pub(super) const fn retained(&self) -> u64 {
        self.end.saturating_sub(self.acked_to)
    }

    /// Returns true after [`SendBuffer::finish`].
    pub(super) const fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Returns true once everything, the FIN included, was sent.
    #[inline]
    pub(super) const fn is_all_sent(&self) -> bool {
        self.is_finished && self.sent_to > self.end
    }

    /// Returns true once everything, the FIN included, was acknowledged.
    #[inline]
    pub(super) const fn is_all_acked(&self) -> bool {
        self.is_finished && self.acked_to > self.end
    }

    /// Returns true if spans are to be sent again.
    #[inline]
    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Returns true if only a FIN was never sent.
    pub(super) const fn is_fin_due(&self) -> bool {
        self.is_finished && self.sent_to == self.end
    }

    /// Copies bytes to the end.
    pub(super) fn write(&mut self, mut data: &[u8], buffers: &mut Buffers) {
        debug_assert!(!self.is_finished, "written after finish");
        buffers.sending.on_written(data.len() as u64);
        while !data.is_empty() {
            let filled = self
                .chunks
                .back_mut()
                .map_or(0, |last| last.chunk.fill(data));
            self.end += filled as u64;
            data = &data[filled..];
            if !data.is_empty() {
                // The last chunk is shared content, and a few bytes follow, such as the header of
                // the next frame. They must not claim a buffer as large as the content.
                let previous = match self.chunks.back() {
                    Some(last) if last.chunk.is_open() => last.chunk.capacity(),
                    _ => 0,
                };
                let chunk = Chunk::Open(buffers.take(next_capacity(previous, data.len())));
                self.push(Part {
                    offset: self.end,
                    chunk,
                });
            }
        }
    }

    /// Moves the first `len` bytes to the end without copying them, unless they are few. `Bytes` of which all
    /// were copied stay with the caller, who drops them without a lock held: their drop may run code of the
    /// application.
    pub(super) fn write_shared(&mut self, bytes: &mut Bytes, len: usize, buffers: &mut Buffers) {
        if len < WORTH_SHARING {
            self.write(&bytes[..len], buffers);
            return bytes.advance(len);
        }
        let bytes = ForeignBytes::new(bytes.split_to(len));
        let offset = self.end;
        self.end += bytes.len() as u64;
        buffers.sending.on_written(bytes.len() as u64);
        self.push(Part {
            offset,
            chunk: Chunk::Foreign(bytes),
        });
    }

    /// Appends a part. The first one gets the memory of one, instead of four, because many streams never have
    /// another.
    fn push(&mut self, part: Part) {
        if self.chunks.capacity() == 0 {
            self.chunks.reserve_exact(1);
        }
        self.chunks.push_back(part);
    }

    /// Ends the stream after the bytes written.
    pub(super) fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Returns the next span to be sent for the first time, of any length.
    #[inline]
    pub(super) fn next_unsent(&self) -> Span {
        let offset = self.sent();
        Span {
            offset,
            len: self.unsent(),
            fin: self.is_finished,
        }
    }

    /// Returns the lowest span to send again.
    pub(super) fn next_lost(&self) -> Option<Span> {
        let range = self.lost.first()?;
        let fin = range.end > self.end;
        Some(Span {
            offset: range.start,
            len: range.end.min(self.end) - range.start,
            fin,
        })
    }

    /// Copies the first bytes never sent and marks them as sent.
    #[inline]
    pub(super) fn send_new(&mut self, out: &mut [u8], fin: bool) {
        let offset = self.sent_to;
        while self
            .chunks
            .get(self.cursor)
            .is_some_and(|part| part.end() <= offset)
        {
            self.cursor += 1;
        }
        self.cursor = self.copy(self.cursor, offset, out);
        self.sent_to = offset + out.len() as u64 + u64::from(fin);
    }

    /// Copies a lost span again and marks it as no longer lost.
    pub(super) fn send_lost(&mut self, span: Span, out: &mut [u8]) {
        let first = self
            .chunks
            .partition_point(|part| part.end() <= span.offset);
        self.copy(first, span.offset, out);
        self.lost.remove(span.positions());
    }

    /// Fills `out` from `offset` on, which is in chunk `at`. Returns the index of the last chunk
    /// used.
    #[inline]
    fn copy(&self, mut at: usize, offset: u64, mut out: &mut [u8]) -> usize {
        if out.is_empty() {
            return at;
        }
        let mut skip = usize::try_from(offset - self.chunks[at].offset).expect("inside a chunk");
        loop {
            let bytes = &self.chunks[at].chunk.as_slice()[skip..];
            let len = bytes.len().min(out.len());
            let (now, later) = out.split_at_mut(len);
            now.copy_from_slice(&bytes[..len]);
            if later.is_empty() {
                return at;
            }
            (out, skip, at) = (later, 0, at + 1);
        }
    }

    /// Processes the acknowledgement of this span.
    #[inline]
    pub(super) fn on_acked(&mut self, span: Span, buffers: &mut Buffers) {
        let range = span.positions();
        debug_assert!(range.end <= self.sent_to, "acknowledged but never sent");
        if !self.lost.is_empty() {
            self.lost.remove(range.clone());
        }
        if range.start > self.acked_to {
            return self.acked.insert(range);
        }
        let retained = self.retained();
        self.acked_to = self.acked_to.max(range.end);
        if !self.acked.is_empty() {
            self.advance_over_acked();
        }
        buffers.sending.on_acked(retained - self.retained());
        while self
            .chunks
            .front()
            .is_some_and(|part| part.end() <= self.acked_to)
        {
            self.drop_first(buffers);
        }
    }

    fn advance_over_acked(&mut self) {
        self.acked.remove_below(self.acked_to);
        if let Some(first) = self
            .acked
            .first()
            .filter(|first| first.start <= self.acked_to)
        {
            self.acked_to = first.end;
            self.acked.remove_below(first.end);
        }
    }

    fn drop_first(&mut self, buffers: &mut Buffers) {
        if let Some(part) = self.chunks.pop_front() {
            buffers.give_chunk(part.chunk);
            self.cursor = self.cursor.saturating_sub(1);
        }
    }

    /// Processes the loss of the packet with this span. Positions acknowledged since, from another
    /// packet, stay acknowledged.
    pub(super) fn on_lost(&mut self, span: Span) {
        let range = span.positions();
        let mut start = range.start.max(self.acked_to);
        for acked in self
            .acked
            .iter()
            .take_while(|acked| acked.start < range.end)
        {
            if acked.end > start {
                self.lost.insert(start..acked.start.max(start));
                start = acked.end;
            }
        }
        self.lost.insert(start..range.end);
    }

    /// Drops the bytes from `end` on, none of which were sent, and the FIN. Positions from
    /// `reliable` on are not sent again.
    pub(super) fn truncate(&mut self, end: u64, reliable: u64, buffers: &mut Buffers) {
        debug_assert!(end >= self.sent(), "sent bytes are part of the final size");
        buffers.sending.on_discarded(self.end - end, self.end - end);
        while let Some(last) = self.chunks.back_mut()
            && last.end() > end
        {
            if last.offset < end {
                let len = usize::try_from(end - last.offset).expect("inside a chunk");
                last.chunk.truncate(len);
                break;
            }
            if let Some(part) = self.chunks.pop_back() {
                buffers.give_chunk(part.chunk);
            }
        }
        self.cursor = self.cursor.min(self.chunks.len());
        self.end = end;
        self.is_finished = false;
        self.remove_lost_from(reliable);
    }

    /// Removes the positions from `reliable` on from those to send again.
    pub(super) fn remove_lost_from(&mut self, reliable: u64) {
        self.lost.remove(reliable..u64::MAX);
    }

    /// Frees everything when the stream is reset.
    pub(super) fn discard(&mut self, buffers: &mut Buffers) {
        buffers.sending.on_discarded(self.retained(), self.unsent());
        while !self.chunks.is_empty() {
            self.drop_first(buffers);
        }
        self.acked.clear();
        self.lost.clear();
        self.acked_to = self.end;
        self.sent_to = self.end;
    }

    /// Frees the spare capacity of the lists.
    pub(super) fn shrink(&mut self) {
        self.chunks.shrink_to_fit();
        self.acked.shrink();
        self.lost.shrink();
    }

    /// Resets this to a new buffer that keeps the memory of its empty lists.
    pub(super) fn recycle(&mut self, buffers: &mut Buffers) {
        self.discard(buffers);
        self.chunks.shrink_to(KEPT_ENTRIES);
        if self.end > KEPT_SETS {
            (self.acked, self.lost) = (RangeSet::new(), RangeSet::new());
        }
        (self.cursor, self.acked_to, self.sent_to, self.end) = (0, 0, 0, 0);
        self.is_finished = false;
    }

    /// Returns the memory held for data, in bytes.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.chunks.iter().map(|part| part.chunk.capacity()).sum()
    }
}

/// Smaller writes are copied: a chunk of their own would cost more.
const WORTH_SHARING: usize = 1 << 10;
/// Capacity that the list of a recycled stream keeps, in chunks.
const KEPT_ENTRIES: usize = 8;
/// Streams with more bytes than this do not keep the memory of their sets, which may have grown large.
const KEPT_SETS: u64 = 256 << 10;

#[cfg(test)]
mod tests;
