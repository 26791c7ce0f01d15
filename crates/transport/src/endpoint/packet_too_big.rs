//! ICMP Packet Too Big messages: validation, and assignment to connections.

use std::net::SocketAddr;

use courser_base::Time;
use courser_wire::ConnectionId;

use super::{ConnectionHandle, Endpoint};

/// An ICMP Packet Too Big message: one of our datagrams was too large for a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketTooBig<'a> {
    /// The destination of the datagram.
    pub peer: SocketAddr,
    /// The largest IP packet that the link accepts, headers included, in bytes.
    pub mtu: u32,
    /// The beginning of the datagram's UDP payload. 41 bytes suffice for all checks.
    pub quote: &'a [u8],
}

impl Endpoint {
    /// Processes an ICMP Packet Too Big message. Returns true and marks the connection ready if the
    /// message is credible.
    ///
    /// It must quote a packet that the connection sent to this address with the ID in use there.
    /// The packet must be neither acknowledged nor lost, and larger than the reported size, which
    /// must allow at least 1200 bytes of payload. All other messages are ignored (RFC 9000
    /// §14.2.1). A quote that ends before the packet number can only set the size of the next
    /// probe, and one that ends before the ID has no effect. The cost is the same for every message.
    pub fn on_packet_too_big(&mut self, now: Time, message: &PacketTooBig<'_>) -> bool {
        let handle = self.find_by_peer_id(message);
        let is_accepted = self.guard(|endpoint| {
            let connection = handle.and_then(|handle| endpoint.connection_mut(handle));
            connection.is_some_and(|connection| {
                connection.path().peer == message.peer
                    && connection.on_packet_too_big(now, message.mtu, message.quote)
            })
        });
        let is_accepted = is_accepted.unwrap_or(false);
        if is_accepted {
            self.stats.packets_too_big += 1;
            handle
                .into_iter()
                .for_each(|handle| self.mark_ready(handle));
        } else {
            self.stats.packets_too_big_ignored += 1;
        }
        is_accepted
    }

    /// Finds the connection of a quote. A short header does not contain the length of its ID, so
    /// every length is tried.
    fn find_by_peer_id(&self, message: &PacketTooBig<'_>) -> Option<ConnectionHandle> {
        let after_first = message.quote.get(1..)?;
        let longest = after_first.len().min(ConnectionId::MAX_LEN);
        (0..=longest).rev().find_map(|len| {
            let id = ConnectionId::new(&after_first[..len])?;
            self.router.find_sender(message.peer, &id)
        })
    }
}
