//! One write to a stream: its bytes, and whether the stream ends behind them.

use bytes::Bytes;
use courser_base::foreign::ForeignBytes;
use courser_transport::{Streams, WriteError};
use courser_wire::StreamId;

/// The amount that [`SendStream::write_chunks`](crate::SendStream::write_chunks) has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Total length in bytes.
    pub bytes: usize,
    /// Number of chunks that were written completely. They are empty now.
    pub chunks: usize,
}

/// Bytes for a stream, and whether the stream ends behind them.
#[derive(Debug)]
pub struct Write<'a> {
    bytes: Source<'a>,
    /// The stream ends behind the bytes.
    is_last: bool,
    /// The bytes are sent at once, even in a turn of the driver, which sends later and lets other tasks run
    /// first.
    pub(crate) is_urgent: bool,
}

/// The memory that bytes come from.
#[derive(Debug)]
enum Source<'a> {
    /// Memory of the caller, from which the bytes are copied.
    Slice(&'a [u8]),
    /// Shared memory, which is kept. Chunks that were written are empty afterwards; one that was written in
    /// part holds the rest.
    Chunks(&'a mut [Bytes]),
}

impl<'a> Write<'a> {
    /// Writes bytes that are copied.
    pub fn slice(bytes: &'a [u8]) -> Self {
        Self::new(Source::Slice(bytes))
    }

    /// Writes chunks that are kept. A chunk that was written is empty afterwards.
    pub fn chunks(chunks: &'a mut [Bytes]) -> Self {
        Self::new(Source::Chunks(chunks))
    }

    fn new(bytes: Source<'a>) -> Self {
        Self {
            bytes,
            is_last: false,
            is_urgent: false,
        }
    }

    /// Ends the stream in the same step if all bytes are accepted.
    pub fn last(self) -> Self {
        Self {
            is_last: true,
            ..self
        }
    }

    /// Sends the bytes at once, even in a turn of the driver.
    pub fn urgent(self) -> Self {
        Self {
            is_urgent: true,
            ..self
        }
    }

    /// Returns the result of a write that has nothing to do.
    pub(crate) fn nothing(&self) -> Option<Written> {
        let chunks = match &self.bytes {
            Source::Slice(bytes) => bytes.is_empty().then_some(0),
            Source::Chunks(chunks) => chunks.iter().all(Bytes::is_empty).then_some(chunks.len()),
        };
        let chunks = chunks.filter(|_| !self.is_last)?;
        Some(Written { bytes: 0, chunks })
    }

    /// Drops the first `count` chunks, which were written, after the locks are released.
    pub(crate) fn drop_later(&mut self, count: usize) {
        if let Source::Chunks(chunks) = &mut self.bytes {
            for chunk in &mut chunks[..count] {
                drop(ForeignBytes::new(std::mem::take(chunk)));
            }
        }
    }

    /// Writes as much as the send buffer accepts. Also returns true if the stream has ended.
    pub(crate) fn write_to(
        &mut self,
        streams: &mut Streams,
        id: StreamId,
    ) -> Result<(Written, bool), WriteError> {
        let (written, is_complete) = match &mut self.bytes {
            Source::Slice([]) => (Written::default(), true),
            Source::Slice(slice) => {
                let bytes = streams.write(id, slice)?;
                (Written { bytes, chunks: 0 }, bytes == slice.len())
            }
            Source::Chunks(chunks) => {
                let written = write_chunks(streams, id, chunks)?;
                (written, written.chunks == chunks.len())
            }
        };
        let is_over = self.is_last && is_complete && streams.finish(id).is_ok();
        Ok((written, is_over))
    }
}

/// Writes chunk by chunk until one does not fit.
fn write_chunks(
    streams: &mut Streams,
    id: StreamId,
    chunks: &mut [Bytes],
) -> Result<Written, WriteError> {
    let mut written = Written::default();
    for chunk in chunks {
        while !chunk.is_empty() {
            match streams.write_chunk(id, chunk) {
                Ok(bytes) => written.bytes += bytes,
                // The next call reports it. Accepted bytes must not be reported as lost.
                Err(_) if written.bytes > 0 => return Ok(written),
                Err(error) => return Err(error),
            }
        }
        written.chunks += 1;
    }
    Ok(written)
}
