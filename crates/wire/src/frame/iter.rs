//! Iteration over the frames of a packet.

use std::fmt;

use super::{Frame, FrameType};
use crate::error::DecodeError;
use crate::reader::Reader;

/// Iterator over the frames of a payload. A run of PADDING is one item.
///
/// An error ends the iteration, because the start of the next frame is then unknown. An empty
/// payload has no items. A packet without frames is an error, which the caller must detect
/// (RFC 9000 §12.4).
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// Creates an iterator over the payload of an opened packet.
    #[inline]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(payload),
        }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, FrameError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let frame = Frame::decode(&mut self.reader);
        if frame.is_err() {
            self.reader.rest();
        }
        Some(frame)
    }
}

/// The error of a frame that cannot be decoded: FRAME_ENCODING_ERROR, or PROTOCOL_VIOLATION for a
/// type that is not in its shortest encoding. RFC 9000 §12.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameError {
    /// The cause of the error and its offset in the payload.
    pub error: DecodeError,
    /// The type of the frame, for use in CONNECTION_CLOSE; 0 if it cannot be read.
    pub frame_type: u64,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", FrameType(self.frame_type), self.error)
    }
}

impl std::error::Error for FrameError {}

#[cfg(test)]
mod tests;
