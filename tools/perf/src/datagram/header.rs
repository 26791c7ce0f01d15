//! The content of a datagram: its number, the time at which it was sent, and filler.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

use crate::wire::filler_slice;

/// Size of the header: the number and the time take 8 bytes each, most significant byte first.
pub(crate) const HEADER: usize = 16;

/// The header of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// The number of the datagram, counted from 0 in each direction.
    pub(crate) number: u64,
    /// The time at which it was sent, since the sender started.
    pub(crate) sent_at: Duration,
}

impl Header {
    /// Returns a datagram of `size` bytes, or of the header alone if that is larger.
    pub(crate) fn datagram(self, size: usize) -> Bytes {
        let mut datagram = BytesMut::with_capacity(size.max(HEADER));
        datagram.put_u64(self.number);
        datagram.put_u64(u64::try_from(self.sent_at.as_micros()).unwrap_or(u64::MAX));
        let filler = size.saturating_sub(HEADER) as u64;
        datagram.extend_from_slice(filler_slice(filler));
        datagram.freeze()
    }

    /// Reads the header of a datagram; returns `None` when it is shorter than a header.
    pub(crate) fn read(datagram: &[u8]) -> Option<Self> {
        let (number, rest) = datagram.split_first_chunk()?;
        let (micros, _) = rest.split_first_chunk()?;
        Some(Self {
            number: u64::from_be_bytes(*number),
            sent_at: Duration::from_micros(u64::from_be_bytes(*micros)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_read_as_written_and_has_the_requested_size() {
        let header = Header {
            number: 70_000,
            sent_at: Duration::from_micros(1_500_000),
        };
        for size in [16, 17, 1200] {
            let datagram = header.datagram(size);
            assert_eq!(datagram.len(), size);
            assert_eq!(Header::read(&datagram), Some(header));
        }
    }

    #[test]
    fn datagrams_shorter_than_a_header_are_ignored() {
        let datagram = Header {
            number: 1,
            sent_at: Duration::ZERO,
        }
        .datagram(16);
        for end in 0..HEADER {
            assert_eq!(Header::read(&datagram[..end]), None, "{end} bytes");
        }
    }
}
