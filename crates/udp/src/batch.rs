//! One batch of datagrams, going out or come in.

use std::net::{IpAddr, SocketAddr};

use courser_base::Ecn;

/// Datagrams to one destination, ready for the wire.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// Where the datagrams go. An IPv4-mapped IPv6 address means the IPv4 address.
    pub destination: SocketAddr,
    /// Our address to send from. Takes effect only on a socket bound to a wildcard address and
    /// not connected; elsewhere the socket has just one address.
    pub source: Option<IpAddr>,
    /// The mark for every datagram of the batch.
    pub ecn: Ecn,
    /// Length of each datagram but the last, which may be shorter. `None`: all of `contents` is
    /// one datagram.
    pub segment_size: Option<usize>,
    /// The datagrams, one after the other.
    pub contents: &'a [u8],
}

impl Transmit<'_> {
    /// Length of every datagram but the last, at least 1.
    pub(crate) fn segment_len(&self) -> usize {
        match self.segment_size {
            Some(size) if size > 0 => size,
            _ => self.contents.len().max(1),
        }
    }
}

/// Datagrams of one peer, taken from the kernel in one call.
///
/// The kernel merges only datagrams with the same addresses and the same ECN mark, so one
/// description holds for all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// How many bytes of the buffer were filled.
    pub len: usize,
    /// Length of each datagram but the last, which may be shorter. Never 0, so that it can
    /// divide the buffer; an empty datagram has `len` 0.
    pub segment_size: usize,
    /// Who sent the datagrams. Never an IPv4-mapped address.
    pub peer: SocketAddr,
    /// The address of ours that they were sent to, if the platform tells.
    pub local: Option<IpAddr>,
    /// The mark on every datagram of the batch.
    pub ecn: Ecn,
    /// Something is missing, because the buffer was too short or because descriptions were cut
    /// off. The bytes are not to be trusted as whole datagrams.
    pub truncated: bool,
}

impl Received {
    /// How many datagrams the batch holds. An empty datagram counts as one.
    pub fn count(&self) -> usize {
        self.len.div_ceil(self.segment_size).max(1)
    }

    /// The datagrams of the batch, in order of arrival. An empty datagram is left out.
    ///
    /// `buffer` is the one that was received into.
    pub fn datagrams<'b>(&self, buffer: &'b [u8]) -> std::slice::Chunks<'b, u8> {
        buffer[..self.len].chunks(self.segment_size)
    }

    /// The same datagrams, to be decrypted in place.
    pub fn datagrams_mut<'b>(&self, buffer: &'b mut [u8]) -> std::slice::ChunksMut<'b, u8> {
        buffer[..self.len].chunks_mut(self.segment_size)
    }
}

#[cfg(test)]
mod tests;
