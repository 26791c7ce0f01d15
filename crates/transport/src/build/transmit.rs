//! The buffer that a batch of datagrams is built in, and the destination of the batch.

use std::net::{IpAddr, SocketAddr};

use courser_base::{Ecn, FourTuple};

/// Largest batch in bytes: the most that one UDP send accepts.
pub const MAX_BATCH: usize = 65_507;

/// Identifies one of the sockets of an endpoint. The driver chooses the numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SocketId(pub u32);

/// A batch of datagrams ready to be sent; its bytes are in the [`TransmitBuffer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The address to send to.
    pub destination: SocketAddr,
    /// The local address to send from; `None` lets the system choose.
    pub source: Option<IpAddr>,
    /// The socket to send from. Only an endpoint whose socket was replaced has more than one.
    pub socket: SocketId,
    /// The ECN codepoint for the IP header.
    pub ecn: Ecn,
    /// Length of each datagram but the last, which may be shorter; `None` for a single datagram.
    pub segment_size: Option<usize>,
    /// Total length in bytes.
    pub len: usize,
}

impl Transmit {
    /// Describes a batch of `len` bytes from `socket`, in datagrams of `segment_size` if there are
    /// several.
    pub(crate) fn new(
        path: FourTuple,
        socket: SocketId,
        ecn: Ecn,
        segment_size: Option<usize>,
        len: usize,
    ) -> Self {
        Self {
            destination: path.peer,
            source: path.local,
            socket,
            ecn,
            segment_size,
            len,
        }
    }

    /// Returns the number of datagrams.
    pub(crate) fn datagrams(&self) -> u64 {
        let size = self.segment_size.unwrap_or(self.len);
        self.len.div_ceil(size) as u64
    }
}

/// A buffer for outgoing batches that is reused, so that it stays in the cache. Its memory, 64 KiB, is allocated
/// for the first batch.
#[derive(Debug)]
pub struct TransmitBuffer {
    bytes: Vec<u8>,
    len: usize,
    max_segments: usize,
}

impl TransmitBuffer {
    /// Creates a buffer for batches of at most `max_segments` datagrams; 1 if the system cannot
    /// segment.
    pub fn new(max_segments: usize) -> Self {
        Self {
            bytes: Vec::new(),
            len: 0,
            max_segments: max_segments.max(1),
        }
    }

    /// Returns the bytes of the last batch.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Returns the maximum number of datagrams in a batch.
    pub fn max_segments(&self) -> usize {
        self.max_segments
    }

    /// Changes the size of later batches, for example after the system refused one.
    pub fn set_max_segments(&mut self, max_segments: usize) {
        self.max_segments = max_segments.max(1);
    }

    /// Frees the memory together with the last batch. The next batch allocates it again.
    pub fn free(&mut self) {
        self.len = 0;
        self.bytes = Vec::new();
    }

    pub(crate) fn start(&mut self) {
        self.len = 0;
        if self.bytes.is_empty() {
            self.bytes = vec![0; MAX_BATCH];
        }
    }

    /// Returns the free part of the buffer for the next datagram, of at most `len` bytes.
    pub(crate) fn spare(&mut self, len: usize) -> &mut [u8] {
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
