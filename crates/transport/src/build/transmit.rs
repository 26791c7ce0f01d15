//! The buffer that a batch of datagrams is built in, and where the batch goes.

use std::net::{IpAddr, SocketAddr};

use courser_base::Ecn;

/// Largest batch in bytes: what one UDP send takes.
pub const MAX_BATCH: usize = 65_507;

/// A batch of datagrams ready to leave; its bytes are in the [`TransmitBuffer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Where to.
    pub destination: SocketAddr,
    /// Which local address to send from, where it matters.
    pub source: Option<IpAddr>,
    /// The mark for the IP header.
    pub ecn: Ecn,
    /// Length of each datagram but the last, which may be shorter; `None` for a single one.
    pub segment_size: Option<usize>,
    /// Bytes in all.
    pub len: usize,
}

/// One hot buffer for outgoing batches, used again and again.
#[derive(Debug)]
pub struct TransmitBuffer {
    bytes: Vec<u8>,
    len: usize,
    max_segments: usize,
}

impl TransmitBuffer {
    /// A buffer for batches of at most `max_segments` datagrams; 1 when the system cannot
    /// segment.
    pub fn new(max_segments: usize) -> Self {
        Self {
            bytes: vec![0; MAX_BATCH],
            len: 0,
            max_segments: max_segments.max(1),
        }
    }

    /// The bytes of the last batch.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Datagrams that may be in one batch.
    pub fn max_segments(&self) -> usize {
        self.max_segments
    }

    /// Changes the size of later batches, such as after the system refused one.
    pub fn set_max_segments(&mut self, max_segments: usize) {
        self.max_segments = max_segments.max(1);
    }

    pub(crate) fn start(&mut self) {
        self.len = 0;
    }

    /// Room for the next datagram of at most `len` bytes.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        let end = (self.len + len).min(self.bytes.len());
        &mut self.bytes[self.len..end]
    }

    pub(crate) fn advance(&mut self, len: usize) {
        self.len += len;
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}
