//! The frames of one packet, front to back.

use std::fmt;

use super::{Frame, FrameType};
use crate::error::DecodeError;
use crate::reader::Reader;

/// Iterates over the frames of a payload; a run of PADDING is one item.
///
/// After an error it ends: nothing says where the next frame would begin. An empty payload has
/// no items; that a packet without frames is an error is for the caller to say (RFC 9000 §12.4).
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// Starts at the first frame of an opened packet's payload.
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

/// A frame that does not decode: FRAME_ENCODING_ERROR, except for a type that is not in its
/// shortest encoding, which is a PROTOCOL_VIOLATION. RFC 9000 §12.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameError {
    /// What was wrong and where in the payload.
    pub error: DecodeError,
    /// The type of the frame, for CONNECTION_CLOSE; 0 when not even that could be read.
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
