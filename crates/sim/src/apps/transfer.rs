//! The two ends of a stream that carries the pattern.

use bytes::Bytes;
use courser_base::Time;
use courser_transport::{ReadError, Streams, WriteError};
use courser_wire::StreamId;

use super::{HEADER_LEN, Mismatch, Tally, check, piece};

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
pub(super) enum Wrote {
    /// The stream is blocked until it is writable again.
    Blocked,
    /// Everything up to the end was written.
    All,
    /// The peer stopped the stream, or the stream is closed.
    Unwanted,
}

impl Writing {
    /// Creates the end of a client that requests `response` bytes.
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

    /// Writes as much as the stream has room for.
    pub(super) fn step(&mut self, streams: &mut Streams, tally: &mut Tally) -> Wrote {
        while !self.header.is_empty() {
            if let Err(error) = streams.write_chunk(self.id, &mut self.header) {
                return ended(error);
            }
        }
        while self.offset < self.end {
            let mut next = piece(self.offset, self.end - self.offset);
            match streams.write_chunk(self.id, &mut next) {
                Ok(len) => {
                    self.offset += len as u64;
                    tally.written += len as u64;
                }
                Err(error) => return ended(error),
            }
        }
        Wrote::All
    }
}

fn ended(error: WriteError) -> Wrote {
    match error {
        WriteError::Blocked => Wrote::Blocked,
        WriteError::Stopped(_) | WriteError::ClosedStream => Wrote::Unwanted,
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
pub(super) enum Read {
    /// The stream is blocked until it is readable again.
    Blocked,
    /// The end of the stream, with the value of the header or zero without one.
    End(u64),
    /// The peer reset the stream, or the stream is closed.
    Broken,
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

    /// Reads everything that is available.
    pub(super) fn step(&mut self, now: Time, streams: &mut Streams, tally: &mut Tally) -> Read {
        loop {
            match streams.read_chunk(self.id, usize::MAX) {
                Ok(Some(chunk)) => self.take(chunk, tally),
                Ok(None) => {
                    tally.finished_at = Some(now);
                    tally.streams += 1;
                    return Read::End(u64::from_be_bytes(self.header));
                }
                Err(ReadError::Blocked) => return Read::Blocked,
                Err(ReadError::Reset(_) | ReadError::ClosedStream | ReadError::Unordered) => {
                    return Read::Broken;
                }
            }
        }
    }

    fn take(&mut self, mut chunk: Bytes, tally: &mut Tally) {
        while self.offset < self.header_len && !chunk.is_empty() {
            let at = usize::try_from(self.offset).expect("within the header");
            self.header[at] = chunk[0];
            chunk = chunk.slice(1..);
            self.offset += 1;
        }
        let offset = self.offset.saturating_sub(self.header_len);
        if tally.mismatch.is_none() && !check(offset, &chunk) {
            tally.mismatch = Some(Mismatch {
                stream: self.id,
                offset,
            });
        }
        self.offset += chunk.len() as u64;
        tally.received += chunk.len() as u64;
    }
}
