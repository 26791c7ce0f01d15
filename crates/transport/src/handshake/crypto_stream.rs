//! The CRYPTO stream of one encryption level, in both directions. RFC 9000 §7.5, §19.6.

use std::collections::VecDeque;

use courser_base::RangeSet;
use courser_wire::TransportErrorCode;
use courser_wire::frame::Crypto;

use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;
use crate::space::sent::SentFrame;

/// Maximum of separate pieces past a gap (limit K02).
const MAX_PIECES: usize = 32;

/// The handshake bytes of one encryption level, in both directions.
///
/// Memory depends on the bytes that arrived, and not on their offsets: a piece far ahead takes only its own
/// length.
#[derive(Debug)]
pub struct CryptoStream {
    /// Bytes past `read` that are accepted (limit K01).
    limit: u64,
    /// First offset that was not handed to TLS.
    read: u64,
    /// Bytes in order that were not handed to TLS yet.
    ready: Vec<u8>,
    /// Pieces past a gap, ascending and disjoint.
    pieces: VecDeque<(u64, Vec<u8>)>,
    send: SendSide,
}

#[derive(Debug, Default)]
struct SendSide {
    /// Bytes from `base` on. Those below are acknowledged.
    bytes: VecDeque<u8>,
    base: u64,
    /// First byte never sent.
    unsent: u64,
    acked: RangeSet,
    lost: RangeSet,
}

impl CryptoStream {
    /// Creates an empty stream that accepts data up to `limit` bytes ahead.
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            read: 0,
            ready: Vec::new(),
            pieces: VecDeque::new(),
            send: SendSide::default(),
        }
    }

    /// Frees spare capacity.
    pub fn shrink(&mut self) {
        self.ready.shrink_to_fit();
        self.pieces.shrink_to_fit();
        self.send.bytes.shrink_to_fit();
        self.send.acked.shrink();
        self.send.lost.shrink();
    }

    /// Stores the bytes of a frame. The first bytes received for an offset are kept.
    ///
    /// # Errors
    ///
    /// CRYPTO_BUFFER_EXCEEDED past the limit or with too many gaps.
    pub fn on_crypto_frame(&mut self, frame: &Crypto<'_>) -> Result<(), TransportError> {
        let end = frame.offset + frame.data.len() as u64;
        let max = self.read + self.limit;
        if end > max {
            return Err(exceeded(format!("CRYPTO up to {end} exceeds {max}")));
        }
        let next = self.read + self.ready.len() as u64;
        if frame.offset <= next {
            if end > next {
                let skip = usize::try_from(next - frame.offset).expect("bounded by the limit");
                self.ready.extend_from_slice(&frame.data[skip..]);
                self.join_pieces();
            }
            return Ok(());
        }
        self.keep_piece(frame.offset, frame.data)
    }

    fn keep_piece(&mut self, mut offset: u64, mut data: &[u8]) -> Result<(), TransportError> {
        let mut index = 0;
        while let Some((start, piece)) = self.pieces.get(index) {
            let (start, end) = (*start, *start + piece.len() as u64);
            if offset < start {
                let room = usize::try_from(start - offset).expect("bounded by the limit");
                let (before, rest) = data.split_at(room.min(data.len()));
                // The examined piece has moved if a new one was inserted before it.
                index += self.insert_piece(index, offset, before)?;
                (offset, data) = (start, rest);
            }
            let covered = end.saturating_sub(offset).min(data.len() as u64);
            data = &data[usize::try_from(covered).expect("at max the data")..];
            offset += covered;
            if data.is_empty() {
                return Ok(());
            }
            index += 1;
        }
        self.insert_piece(index, offset, data).map(drop)
    }

    /// Inserts bytes, none of which are in a piece, before the piece at `index`. Returns the number of new
    /// pieces.
    fn insert_piece(
        &mut self,
        index: usize,
        offset: u64,
        data: &[u8],
    ) -> Result<usize, TransportError> {
        // The previous piece is extended if the bytes follow it.
        if let Some((start, piece)) = index.checked_sub(1).and_then(|at| self.pieces.get_mut(at))
            && *start + piece.len() as u64 == offset
        {
            piece.extend_from_slice(data);
            return Ok(0);
        }
        if self.pieces.len() >= MAX_PIECES {
            return Err(exceeded(format!("CRYPTO has more than {MAX_PIECES} gaps")));
        }
        self.pieces.insert(index, (offset, data.to_vec()));
        Ok(1)
    }

    fn join_pieces(&mut self) {
        while let Some((start, piece)) = self.pieces.front() {
            let next = self.read + self.ready.len() as u64;
            if *start > next {
                return;
            }
            let skip = usize::try_from(next - start).expect("bounded by the limit");
            if skip < piece.len() {
                self.ready.extend_from_slice(&piece[skip..]);
            }
            self.pieces.pop_front();
        }
    }

    /// Returns true when all bytes of a frame have arrived before, in order.
    pub fn has_received(&self, frame: &Crypto<'_>) -> bool {
        let end = frame.offset + frame.data.len() as u64;
        !frame.data.is_empty() && end <= self.read + self.ready.len() as u64
    }

    /// Removes and returns the bytes that are in order.
    pub fn read(&mut self) -> Option<Vec<u8>> {
        if self.ready.is_empty() {
            return None;
        }
        self.read += self.ready.len() as u64;
        Some(std::mem::take(&mut self.ready))
    }

    /// Returns true while TLS has not read all bytes that arrived, in order or not
    /// (RFC 9001 §4.1.3).
    pub fn has_unread(&self) -> bool {
        !self.ready.is_empty() || !self.pieces.is_empty()
    }

    /// Returns the first offset that TLS has not read.
    pub fn read_offset(&self) -> u64 {
        self.read
    }

    /// Returns the bytes received that TLS has not read.
    #[cfg(test)]
    pub fn buffered(&self) -> usize {
        self.ready.len()
            + self
                .pieces
                .iter()
                .map(|(_, piece)| piece.len())
                .sum::<usize>()
    }

    /// Queues bytes to send.
    pub fn write(&mut self, bytes: &[u8]) {
        self.send.bytes.extend(bytes);
    }

    /// Returns the bytes written by TLS that are unsent or not acknowledged.
    #[cfg(test)]
    pub fn unacked(&self) -> usize {
        self.send.bytes.len()
    }

    /// Returns true when CRYPTO frames could be written.
    pub fn has_frames_to_send(&self) -> bool {
        !self.send.lost.is_empty() || self.send.unsent < self.send.end()
    }

    /// Writes as many CRYPTO frames as fit: lost spans first, then new bytes.
    pub fn write_frames(&mut self, packet: &mut PacketBuilder<'_>) {
        while let Some((offset, len)) = self.send.next_span() {
            let header = Crypto::header_len(offset, len);
            // A frame with under 16 bytes of data is not worth its header, unless it is the last.
            let room = packet.remaining().saturating_sub(header);
            if room < len.min(16) {
                return;
            }
            let len = len.min(room);
            Crypto::encode_header(packet.writer(), offset, len);
            self.send.copy(offset, packet.writer().advance_with(len));
            let sent_len = u16::try_from(len).expect("a packet is shorter than 2^16");
            packet.record(SentFrame::Crypto {
                offset,
                len: sent_len,
            });
            self.send.on_span_sent(offset, len);
        }
    }

    /// Processes the acknowledgement of these bytes.
    pub fn on_acked(&mut self, offset: u64, len: u16) {
        self.send.on_acked(offset, u64::from(len));
    }

    /// Queues lost bytes to be sent again.
    pub fn on_lost(&mut self, offset: u64, len: u16) {
        let end = offset + u64::from(len);
        self.send.lost.insert(offset.max(self.send.base)..end);
        for acked in self.send.acked.iter().collect::<Vec<_>>() {
            self.send.lost.remove(acked);
        }
    }

    /// Queues all bytes to be sent again from the start, after Retry (RFC 9000 §17.2.5.3).
    pub fn rewind(&mut self) {
        self.send.unsent = self.send.base;
        self.send.lost.clear();
    }
}

impl SendSide {
    fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    fn next_span(&self) -> Option<(u64, usize)> {
        let span = self.lost.first().unwrap_or(self.unsent..self.end());
        let len = usize::try_from(span.end - span.start).expect("a span of memory");
        (len > 0).then_some((span.start, len))
    }

    fn copy(&self, offset: u64, room: &mut [u8]) {
        let start = usize::try_from(offset - self.base).expect("within memory");
        let (front, back) = self.bytes.as_slices();
        let from_front = front.len().saturating_sub(start).min(room.len());
        let (first, second) = room.split_at_mut(from_front);
        if from_front > 0 {
            first.copy_from_slice(&front[start..start + from_front]);
        }
        let start = (start + from_front).saturating_sub(front.len());
        second.copy_from_slice(&back[start..start + second.len()]);
    }

    fn on_span_sent(&mut self, offset: u64, len: usize) {
        let end = offset + len as u64;
        self.lost.remove(offset..end);
        self.unsent = self.unsent.max(end);
    }

    fn on_acked(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        self.lost.remove(offset..end);
        self.acked.insert(offset.max(self.base)..end.max(self.base));
        if let Some(first) = self.acked.first()
            && first.start <= self.base
        {
            self.acked.pop_first();
            let done = usize::try_from(first.end - self.base).expect("within memory");
            self.bytes.drain(..done.min(self.bytes.len()));
            self.base = first.end;
            if self.bytes.is_empty() {
                self.bytes = VecDeque::new();
            }
        }
    }
}

fn exceeded(reason: String) -> TransportError {
    TransportError::new(TransportErrorCode::CRYPTO_BUFFER_EXCEEDED, reason)
}

#[cfg(test)]
mod tests;
