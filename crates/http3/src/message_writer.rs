//! The frames of a message to send (RFC 9114 §4.1).

use bytes::{Buf, BufMut as _, Bytes};

use crate::frame::data_header;

/// Collects the frames of one message until they are written to its stream.
///
/// The header section comes first, then content and trailers in the order of the calls. Small content is copied
/// after the preceding frames; large content is not copied.
#[derive(Debug)]
pub struct MessageWriter {
    chunks: Vec<Bytes>,
    /// The bytes after `chunks`: HEADERS frames, frame headers, small content.
    small: Vec<u8>,
    /// The number of content bytes still expected, if the length is known and was not exceeded.
    left: Option<u64>,
}

impl MessageWriter {
    /// Returns the number of bytes that content of this length takes after the HEADERS frame, if it is copied
    /// there. A HEADERS frame in a buffer with this spare capacity is not moved.
    pub const fn room_for(length: Option<u64>) -> usize {
        match length {
            Some(length @ 1..=SMALL_AS_U64) => MAX_HEADER + length as usize,
            _ => 0,
        }
    }

    /// Returns how much content fits into this many bytes together with the header of its frame.
    pub const fn content_within(bytes: u64) -> u64 {
        bytes.saturating_sub(LARGEST_HEADER)
    }

    /// Starts a message with its HEADERS frame, encoded by [`Connection::encode`](crate::Connection::encode).
    /// `length` is the length of the content, if known.
    pub const fn new(headers: Vec<u8>, length: Option<u64>) -> Self {
        Self {
            chunks: Vec::new(),
            small: headers,
            left: length,
        }
    }

    /// Appends a DATA frame. Empty content is ignored.
    pub fn push_content(&mut self, mut data: impl Buf) {
        let len = data.remaining();
        if len == 0 {
            return;
        }
        self.left = self.left.and_then(|left| left.checked_sub(len as u64));
        let header = data_header(len as u64);
        self.small.extend_from_slice(header.as_ref());
        if len <= SMALL {
            self.small.put(data);
            return;
        }
        self.close_small();
        self.chunks.push(data.copy_to_bytes(len));
    }

    /// Appends the encoded HEADERS frame of the trailers.
    pub fn push_trailers(&mut self, headers: &[u8]) {
        self.small.extend_from_slice(headers);
    }

    /// Returns all bytes to write, in order. The caller removes what it has written from the front.
    pub fn chunks(&mut self) -> &mut Vec<Bytes> {
        self.close_small();
        &mut self.chunks
    }

    /// Returns all bytes to write if they are contiguous, for writing with a copy.
    pub fn as_small(&self) -> Option<&[u8]> {
        self.chunks.is_empty().then_some(self.small.as_slice())
    }

    /// Returns the number of bytes to write.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum::<usize>() + self.small.len()
    }

    /// Returns true if there are no bytes to write.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.small.is_empty()
    }

    /// Returns true if the length of the content is known and all of it was appended.
    pub const fn has_all_content(&self) -> bool {
        matches!(self.left, Some(0))
    }

    /// Frees spare memory, because the peer may take no more for a long time.
    pub fn shrink(&mut self) {
        self.chunks.shrink_to_fit();
    }

    fn close_small(&mut self) {
        if !self.small.is_empty() {
            self.chunks.push(std::mem::take(&mut self.small).into());
        }
    }
}

/// Largest content that is copied. A separate chunk costs more than copying this number of bytes, and the
/// transport would copy them anyway.
const SMALL: usize = 1023;
const SMALL_AS_U64: u64 = SMALL as u64;

/// Size of the header of a DATA frame with small content: a type and a length of two bytes.
const MAX_HEADER: usize = 3;

/// Size of the header of a DATA frame with less than a gigabyte of content.
const LARGEST_HEADER: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn written(writer: &mut MessageWriter) -> Vec<u8> {
        writer.chunks().concat()
    }

    #[test]
    fn frames_keep_their_order() {
        let large = Bytes::from(vec![b'l'; 2000]);
        let mut writer = MessageWriter::new(b"head".to_vec(), None);
        writer.push_content(&b"one"[..]);
        writer.push_content(large.clone());
        writer.push_content(&b""[..]);
        writer.push_content(&b"two"[..]);
        writer.push_trailers(b"end");
        let expected = [
            b"head\x00\x03one\x00\x47\xd0",
            &large[..],
            b"\x00\x03twoend",
        ];
        assert_eq!(writer.len(), expected.concat().len());
        assert_eq!(written(&mut writer), expected.concat());
    }

    #[test]
    fn large_content_is_not_copied() {
        let large = Bytes::from(vec![0; SMALL + 1]);
        let mut writer = MessageWriter::new(Vec::new(), None);
        writer.push_content(large.clone());
        let chunks = writer.chunks();
        assert_eq!(chunks.len(), 2);
        assert_eq!(chunks[1].as_ptr(), large.as_ptr());
    }

    #[test]
    fn content_fits_into_the_spare_capacity() {
        for length in [1, 63, 64, SMALL] {
            let room = MessageWriter::room_for(Some(length as u64));
            let mut headers = Vec::with_capacity(4 + room);
            headers.extend_from_slice(b"head");
            let place = headers.as_ptr();
            let mut writer = MessageWriter::new(headers, None);
            writer.push_content(Bytes::from(vec![0; length]));
            let small = writer.as_small().expect("small content is copied");
            assert!(small.len() <= 4 + room && small.len() + 2 > 4 + room);
            assert_eq!(small.as_ptr(), place);
        }
        for length in [None, Some(0), Some(SMALL as u64 + 1), Some(u64::MAX)] {
            assert_eq!(MessageWriter::room_for(length), 0);
        }
    }

    #[test]
    fn small_content_is_contiguous() {
        let mut writer = MessageWriter::new(b"head".to_vec(), None);
        writer.push_content(Bytes::from(vec![0; SMALL]));
        assert_eq!(writer.as_small().map(<[u8]>::len), Some(4 + 3 + SMALL));
        writer.push_content(Bytes::from(vec![0; SMALL + 1]));
        assert_eq!(writer.as_small(), None);
        writer.chunks().clear();
        assert!(writer.is_empty());
        assert_eq!(writer.as_small(), Some(&[][..]));
    }

    /// A body that exceeds its announced length is not delayed until its end.
    #[test]
    fn complete_content_is_reported() {
        for (length, pieces, is_all) in [
            (None, &["abc"][..], false),
            (Some(3), &[], false),
            (Some(3), &["ab"], false),
            (Some(3), &["ab", "c"], true),
            (Some(3), &["ab", "cd"], false),
            (Some(0), &[], true),
        ] {
            let mut writer = MessageWriter::new(Vec::new(), length);
            for piece in pieces {
                writer.push_content(piece.as_bytes());
            }
            assert_eq!(writer.has_all_content(), is_all, "{length:?} {pieces:?}");
        }
    }
}
