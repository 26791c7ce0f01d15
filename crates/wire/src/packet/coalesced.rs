//! Several packets in one datagram. RFC 9000 §12.2.

use super::{Packet, PacketError, decode};
use crate::connection_id::ConnectionId;

/// The packets of one datagram, front to back.
///
/// The first one that cannot be read is yielded as an error and ends the iteration, since nothing
/// says where the next would begin. Packets for another connection ID than the first one's are
/// passed over (RFC 9000 §12.2). Each packet can be opened or fail to on its own.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    datagram: &'a [u8],
    next: usize,
    local_cid_len: usize,
    /// Of the first packet, once that was read.
    destination: ConnectionId,
}

impl<'a> Packets<'a> {
    /// Starts at the first packet. `local_cid_len` is the length of the connection IDs we gave
    /// out; short headers do not say.
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
