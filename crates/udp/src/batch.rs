//! One batch of datagrams, outgoing or received.

use std::net::{IpAddr, SocketAddr};

use courser_base::Ecn;

/// A batch of datagrams to one destination, ready to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// The destination of the datagrams. An IPv4-mapped IPv6 address means the IPv4 address.
    pub destination: SocketAddr,
    /// The local address to send from. Takes effect only on an unconnected socket that is bound to
    /// a wildcard address. Other sockets have only one address.
    pub source: Option<IpAddr>,
    /// The ECN mark of every datagram.
    pub ecn: Ecn,
    /// Length of each datagram except the last, which may be shorter. `None` means that all of
    /// `contents` is one datagram.
    pub segment_size: Option<usize>,
    /// The datagrams, one directly after the other.
    pub contents: &'a [u8],
}

impl Transmit<'_> {
    /// Returns the length of every datagram except the last, at least 1.
    pub(crate) fn segment_len(&self) -> usize {
        match self.segment_size {
            Some(size) if size > 0 => size,
            _ => self.contents.len().max(1),
        }
    }
}

/// A batch of datagrams from one peer, received from the kernel in one call.
///
/// The kernel merges only datagrams with the same addresses and the same ECN mark, so this
/// description applies to all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Number of bytes written to the buffer.
    pub len: usize,
    /// Length of each datagram except the last, which may be shorter. Never 0, so that it can
    /// divide the buffer; an empty datagram has `len` 0.
    pub segment_size: usize,
    /// The sender of the datagrams. Never an IPv4-mapped address.
    pub peer: SocketAddr,
    /// The local address that the datagrams were sent to, if the platform reports it.
    pub local: Option<IpAddr>,
    /// The ECN mark of every datagram.
    pub ecn: Ecn,
    /// True if data is missing, because the buffer was too short or control messages were cut off.
    /// Do not treat the bytes as whole datagrams then.
    pub truncated: bool,
}

impl Received {
    /// Returns the number of datagrams in the batch. An empty datagram counts as one.
    pub fn count(&self) -> usize {
        self.len.div_ceil(self.segment_size).max(1)
    }

    /// Returns the datagrams of the batch in order of arrival. An empty datagram is left out.
    ///
    /// `buffer` is the buffer that the batch was received into.
    pub fn datagrams<'b>(&self, buffer: &'b [u8]) -> std::slice::Chunks<'b, u8> {
        buffer[..self.len].chunks(self.segment_size)
    }

    /// Returns the same datagrams mutably, for decryption in place.
    pub fn datagrams_mut<'b>(&self, buffer: &'b mut [u8]) -> std::slice::ChunksMut<'b, u8> {
        buffer[..self.len].chunks_mut(self.segment_size)
    }
}

#[cfg(test)]
mod tests;
