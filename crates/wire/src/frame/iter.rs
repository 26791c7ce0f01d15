//! Iteration over the frames of a packet.

use super::{Frame, FrameError};
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

#[cfg(test)]
mod tests;
