//! Splits the bytes of a stream into frames without copying content.

use bytes::{Buf as _, Bytes, BytesMut};
use courser_wire::Reader;

use crate::error::{Code, Error};
use crate::frame::{self, FrameType};

/// The next part of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    /// Bytes of a DATA frame, not empty.
    Data(Bytes),
    /// A DATA frame without content.
    EmptyData,
    /// A complete frame of another known type.
    Frame(FrameType, Bytes),
    /// The start of a frame of unknown type, whose payload will be skipped.
    Skipping {
        /// The type of the frame.
        frame_type: u64,
        /// The length of the payload.
        len: u64,
    },
    /// The start of a HEADERS frame that is longer than allowed. It will be skipped, and its section is not
    /// decoded.
    Oversized {
        /// The length of the payload.
        len: u64,
    },
}

/// Decides which frames a stream may carry when a frame starts.
pub(crate) trait Rules {
    /// Returns the type of a frame with this value.
    fn classify(&self, value: u64) -> FrameType;

    /// Refuses a frame, or returns the longest allowed payload, which does not apply to DATA.
    fn admit(&mut self, frame_type: FrameType) -> Result<u64, Error>;

    /// Called when a DATA frame with `len` bytes of content starts.
    fn on_data_frame(&mut self, _len: u64) {}
}

/// Reads the frames of one stream. Holds at most one chunk of the stream and one payload within the limit of
/// [`Rules`].
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    /// Bytes that have arrived and were not read.
    input: Bytes,
    /// An incomplete header, or a payload that arrives in several chunks.
    partial: BytesMut,
    state: ReaderState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum ReaderState {
    /// Before or inside the header of a frame.
    #[default]
    Header,
    /// Inside a DATA frame with this number of bytes left.
    Data(u64),
    /// Inside a frame of this length, which is stored until it is complete.
    Payload(FrameType, usize),
    /// Inside a frame that is skipped, with this number of bytes left.
    Skip(u64),
}

impl FrameReader {
    /// Adds a chunk. The previous one must have been read.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.input.is_empty(), "a chunk was not read");
        self.input = chunk;
    }

    /// Returns the next part, or `None` if another chunk is needed.
    #[inline]
    pub(crate) fn poll(&mut self, rules: &mut impl Rules) -> Result<Option<Piece>, Error> {
        loop {
            match self.state {
                ReaderState::Header => {
                    if self.input.is_empty() {
                        return Ok(None);
                    }
                    let header = frame::take_header(&mut self.input, &mut self.partial);
                    let Some((value, len)) = header else {
                        return Ok(None);
                    };
                    if let Some(piece) = self.begin(value, len, rules)? {
                        return Ok(Some(piece));
                    }
                }
                ReaderState::Data(left) => {
                    if self.input.is_empty() {
                        return Ok(None);
                    }
                    let len = self.input.len().min(saturating_usize(left));
                    let data = self.input.split_to(len);
                    self.state = match left - len as u64 {
                        0 => ReaderState::Header,
                        left => ReaderState::Data(left),
                    };
                    return Ok(Some(Piece::Data(data)));
                }
                ReaderState::Payload(frame_type, len) => {
                    let payload = self.payload(len);
                    if payload.is_some() {
                        self.state = ReaderState::Header;
                    }
                    return Ok(payload.map(|payload| Piece::Frame(frame_type, payload)));
                }
                ReaderState::Skip(left) => {
                    let len = self.input.len().min(saturating_usize(left));
                    self.input.advance(len);
                    self.state = match left - len as u64 {
                        0 => ReaderState::Header,
                        _ if self.input.is_empty() => {
                            self.state = ReaderState::Skip(left - len as u64);
                            return Ok(None);
                        }
                        left => ReaderState::Skip(left),
                    };
                }
            }
        }
    }

    /// Returns the integer at the start of the stream without consuming it, or `None` if it is incomplete.
    /// Allowed only before any frame was read.
    pub(crate) fn first_integer(&mut self) -> Option<u64> {
        // Only the integer is moved, so that `partial` never holds more than one header.
        while !self.input.is_empty() && Reader::new(&self.partial).varint().is_err() {
            let byte = self.input.split_to(1);
            self.partial.extend_from_slice(&byte);
        }
        Reader::new(&self.partial).varint().ok()
    }

    /// Returns the bytes that have arrived after the [first integer](Self::first_integer) of a stream without
    /// frames.
    pub(crate) fn take_rest(&mut self) -> Bytes {
        self.partial = BytesMut::new();
        std::mem::take(&mut self.input)
    }

    /// Checks that the stream may end here, with all chunks read.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        if self.state == ReaderState::Header && self.partial.is_empty() && self.input.is_empty() {
            Ok(())
        } else {
            Err(Error::frame("stream ended inside a frame"))
        }
    }

    /// Returns the size of the buffer of an incomplete HEADERS frame.
    pub(crate) fn partial_section(&self) -> usize {
        match self.state {
            ReaderState::Payload(FrameType::Headers, _) => self.partial.capacity(),
            _ => 0,
        }
    }

    /// Returns the number of bytes held in buffers.
    pub(crate) fn memory(&self) -> usize {
        self.partial.capacity() + self.input.len()
    }

    fn begin(
        &mut self,
        value: u64,
        len: u64,
        rules: &mut impl Rules,
    ) -> Result<Option<Piece>, Error> {
        let frame_type = rules.classify(value);
        if frame_type == FrameType::Data {
            rules.admit(frame_type)?;
            self.state = ReaderState::Data(len);
            if len == 0 {
                self.state = ReaderState::Header;
                return Ok(Some(Piece::EmptyData));
            }
            rules.on_data_frame(len);
            return Ok(None);
        }
        let most = rules.admit(frame_type)?;
        if frame_type == FrameType::Unknown {
            self.state = if len == 0 {
                ReaderState::Header
            } else {
                ReaderState::Skip(len)
            };
            return Ok(Some(Piece::Skipping {
                frame_type: value,
                len,
            }));
        }
        if len > most && frame_type == FrameType::Headers {
            self.state = ReaderState::Skip(len);
            return Ok(Some(Piece::Oversized { len }));
        }
        if len > most {
            return Err(Error::connection(
                Code::EXCESSIVE_LOAD,
                "frame longer than allowed",
            ));
        }
        self.state = ReaderState::Payload(frame_type, saturating_usize(len));
        Ok(None)
    }

    fn payload(&mut self, len: usize) -> Option<Bytes> {
        if self.partial.is_empty() && self.input.len() >= len {
            return Some(self.input.split_to(len));
        }
        let more = self.input.len().min(len - self.partial.len());
        self.reserve(more, len);
        self.partial.extend_from_slice(&self.input.split_to(more));
        // The whole buffer is taken, because a remaining part would keep its allocation in memory.
        (self.partial.len() == len).then(|| std::mem::take(&mut self.partial).freeze())
    }

    /// Reserves capacity for `more` bytes of a payload of `len` bytes. The buffer grows with the bytes that
    /// arrive, not with the announced length, and never beyond it.
    fn reserve(&mut self, more: usize, len: usize) {
        let needed = self.partial.len() + more;
        let capacity = self.partial.capacity();
        if needed <= capacity {
            return;
        }
        let mut larger = BytesMut::with_capacity(needed.max(2 * capacity).min(len));
        larger.extend_from_slice(&self.partial);
        self.partial = larger;
    }
}

fn saturating_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
