//! Datagrams that arrive at a shard that does not own their connection.
//!
//! The system merges datagrams of one address whatever their IDs are, the hash of an address changes when
//! a client moves, and a stateless reset has random bytes where the ID would be. Such a datagram is handed
//! on to its owner once, and never again.

use courser_base::Time;
use courser_wire::packet::{Packet, PacketKind};

use super::stray::Stray;
use crate::endpoint::Endpoint;
use crate::endpoint::arrived::Arrived;

impl Endpoint {
    /// Returns the next datagrams that have arrived for another shard. Read them after each call of
    /// [`Endpoint::handle_datagrams`]; an endpoint with one shard has none.
    pub fn poll_stray(&mut self) -> Option<Stray> {
        self.strays.pop_front()
    }

    /// Processes datagrams that another shard has received.
    pub fn handle_stray(&mut self, now: Time, stray: Stray) {
        self.stats.strays_received += stray.datagrams() as u64;
        let (arrived, segment_size, mut bytes) = stray.into_parts();
        let arrived = Arrived {
            now,
            is_stray: true,
            ..arrived
        };
        self.handle_batch(arrived, &mut bytes, segment_size);
    }

    /// Counts datagrams that could not be handed on.
    pub fn on_strays_dropped(&mut self, count: usize) {
        self.stats.strays_dropped += count as u64;
    }

    /// Gives up the routes of this shard, which has failed: clients whose handshake it began are new clients
    /// of the others.
    pub fn leave_shards(&mut self) {
        self.routing.leave();
    }

    /// Hands a packet without an owner in this shard on, if another shard owns it or may own it. Returns
    /// false if it has to be handled here.
    #[inline]
    pub fn hand_on(&mut self, arrived: Arrived, datagram: &[u8], packet: &Packet) -> bool {
        if self.shard.is_alone() || arrived.is_stray {
            return false;
        }
        let path = arrived.path;
        let known = self.routing.find_elsewhere(&packet.destination, &path);
        let to = known.or_else(|| match packet.kind {
            // These may have an ID that the client has chosen.
            PacketKind::Initial | PacketKind::ZeroRtt if self.server.is_some() => None,
            _ => self
                .routing
                .find_reset_elsewhere(path.peer, datagram)
                .or_else(|| self.shard_named_by(packet)),
        });
        self.add_stray(to, arrived, datagram)
    }

    /// Hands an Initial packet on that is not the first one of a new client.
    pub fn hand_on_initial(&mut self, arrived: Arrived, datagram: &[u8], packet: &Packet) -> bool {
        if self.shard.is_alone() || arrived.is_stray {
            return false;
        }
        let to = self.shard_named_by(packet);
        self.add_stray(to, arrived, datagram)
    }

    /// Hands a datagram on that resets a connection of another shard.
    pub fn hand_on_reset(&mut self, arrived: Arrived, datagram: &[u8]) -> bool {
        if self.shard.is_alone() || arrived.is_stray {
            return false;
        }
        let to = self
            .routing
            .find_reset_elsewhere(arrived.path.peer, datagram);
        self.add_stray(to, arrived, datagram)
    }

    /// Returns the other shard that the ID of a packet names, if it is one of our IDs.
    fn shard_named_by(&self, packet: &Packet) -> Option<u16> {
        let shard = self.ids.shard_of(&packet.destination)?;
        (shard != self.shard.number).then_some(shard)
    }

    fn add_stray(&mut self, to: Option<u16>, arrived: Arrived, datagram: &[u8]) -> bool {
        let Some(shard) = to else {
            return false;
        };
        self.stats.strays_sent += 1;
        if let Some(last) = self.strays.back_mut()
            && last.extend(shard, arrived, datagram)
        {
            return true;
        }
        self.strays.push_back(Stray::new(shard, arrived, datagram));
        true
    }
}
