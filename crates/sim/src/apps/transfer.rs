//! The two ends of a stream that carries the pattern.

use bytes::Bytes;
use courser_base::Time;
use courser_transport::{ReadError, Streams, WriteError};
use courser_wire::StreamId;

use super::{AppCounters, HEADER_LEN, Mismatch, is_pattern_at, pattern_at};

/// The sending end of a stream: an optional header, and then the pattern.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) id: StreamId,
    header: Bytes,
    offset: u64,
    end: u64,
}

/// The result of writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WriteOutcome {
    /// The stream is blocked until it is writable again.
    Blocked,
    /// All bytes up to the end were written.
    All,
    /// The peer stopped the stream, or the stream is closed.
    Stopped,
}

impl Writing {
    /// Creates the sending end of a request for `response` bytes.
    pub(super) fn request(id: StreamId, response: u64, len: u64) -> Self {
        Self {
            header: Bytes::copy_from_slice(&response.to_be_bytes()),
            ..Self::response(id, len)
        }
    }

    pub(super) fn response(id: StreamId, len: u64) -> Self {
        Self {
            id,
            header: Bytes::new(),
            offset: 0,
            end: len,
        }
    }

    /// Extends the bytes to write to `end` in total.
    pub(super) fn extend_to(&mut self, end: u64) {
        self.end = self.end.max(end);
    }

    /// Writes as much as the stream accepts.
    pub(super) fn step(
        &mut self,
        streams: &mut Streams,
        counters: &mut AppCounters,
    ) -> WriteOutcome {
        while !self.header.is_empty() {
            if let Err(error) = streams.write_chunk(self.id, &mut self.header) {
                return ended(error);
            }
        }
        while self.offset < self.end {
            let mut next = pattern_at(self.offset, self.end - self.offset);
            match streams.write_chunk(self.id, &mut next) {
                Ok(len) => {
                    self.offset += len as u64;
                    counters.written += len as u64;
                }
                Err(error) => return ended(error),
            }
        }
        WriteOutcome::All
    }
}

fn ended(error: WriteError) -> WriteOutcome {
    match error {
        WriteError::Blocked => WriteOutcome::Blocked,
        WriteError::Stopped(_) | WriteError::ClosedStream => WriteOutcome::Stopped,
    }
}

/// The receiving end of a stream: an optional header, and then the pattern, which it checks.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) id: StreamId,
    header: [u8; 8],
    header_len: u64,
    /// The bytes read so far, header included.
    offset: u64,
}

/// The result of reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReadOutcome {
    /// The stream is blocked until it is readable again.
    Blocked,
    /// The end of the stream was read. Has the value of the header, or zero without a header.
    End(u64),
    /// The peer reset the stream, or the stream is closed.
    Reset,
}

impl Reading {
    pub(super) fn request(id: StreamId) -> Self {
        Self {
            header_len: HEADER_LEN,
            ..Self::response(id)
        }
    }

    pub(super) fn response(id: StreamId) -> Self {
        Self {
            id,
            header: [0; 8],
            header_len: 0,
            offset: 0,
        }
    }

    /// Reads and checks all available bytes.
    pub(super) fn step(
        &mut self,
        now: Time,
        streams: &mut Streams,
        counters: &mut AppCounters,
    ) -> ReadOutcome {
        loop {
            match streams.read_chunk(self.id, usize::MAX) {
                Ok(Some(chunk)) => self.take(chunk, counters),
                Ok(None) => {
                    counters.finished_at = Some(now);
                    counters.streams += 1;
                    return ReadOutcome::End(u64::from_be_bytes(self.header));
                }
                Err(ReadError::Blocked) => return ReadOutcome::Blocked,
                Err(ReadError::Reset(_) | ReadError::ClosedStream | ReadError::Unordered) => {
                    return ReadOutcome::Reset;
                }
            }
        }
    }

    fn take(&mut self, mut chunk: Bytes, counters: &mut AppCounters) {
        while self.offset < self.header_len && !chunk.is_empty() {
            let at = usize::try_from(self.offset).expect("the offset is within the header");
            self.header[at] = chunk[0];
            chunk = chunk.slice(1..);
            self.offset += 1;
        }
        let offset = self.offset.saturating_sub(self.header_len);
        if counters.mismatch.is_none() && !is_pattern_at(offset, &chunk) {
            counters.mismatch = Some(Mismatch {
                stream: self.id,
                offset,
            });
        }
        self.offset += chunk.len() as u64;
        counters.received += chunk.len() as u64;
    }
}
