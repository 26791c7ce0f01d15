//! Coalesced packets: several packets in one datagram. RFC 9000 §12.2.

use super::{Packet, PacketError, decode};
use crate::connection_id::ConnectionId;

/// Iterator over the packets of a datagram, first to last.
///
/// The first packet that cannot be decoded yields an error and ends the iteration, because the
/// start of the next packet is then unknown. Packets whose Destination Connection ID differs from
/// that of the first packet are skipped (RFC 9000 §12.2). Each packet is opened independently of
/// the others.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    datagram: &'a [u8],
    next: usize,
    local_cid_len: usize,
    /// Destination Connection ID of the first packet, once it was decoded.
    destination: ConnectionId,
}

impl<'a> Packets<'a> {
    /// Creates an iterator that starts at the first packet. `local_cid_len` is the length of our
    /// connection IDs, which short headers do not encode.
    #[inline]
    pub const fn new(datagram: &'a [u8], local_cid_len: usize) -> Self {
        Self {
            datagram,
            next: 0,
            local_cid_len,
            destination: ConnectionId::EMPTY,
        }
    }
}

impl Iterator for Packets<'_> {
    type Item = Result<Packet, PacketError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while self.next < self.datagram.len() {
            let packet = match decode(self.datagram, self.next, self.local_cid_len) {
                Ok(packet) => packet,
                Err(error) => {
                    self.next = self.datagram.len();
                    return Some(Err(error));
                }
            };
            let is_first = self.next == 0;
            self.next = packet.end;
            if is_first {
                self.destination = packet.destination;
                return Some(Ok(packet));
            }
            if packet.destination == self.destination {
                return Some(Ok(packet));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
