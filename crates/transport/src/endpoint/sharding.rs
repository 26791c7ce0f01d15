//! An endpoint as one of several shards: its creation, and datagrams that arrive at a shard without their
//! connection.
//!
//! The system merges datagrams of one address with different IDs, the hash of an address changes when a
//! client moves, and a stateless reset has random bytes in place of the ID. Such a datagram is forwarded to
//! its owner once.

use std::sync::Arc;

use courser_base::{FourTuple, Time};
use courser_wire::packet::{Packet, PacketKind};

use super::Endpoint;
use super::arrived::Arrived;
use super::secrets::Secrets;
use super::shards::outbox::MisroutedBatch;
use super::shards::{MAX_SHARDS, ShardId};
use super::shared::Shared;
use crate::config::{EndpointConfig, ServerConfig};
use crate::rng::Rng;

impl Endpoint {
    /// Creates the shards of one endpoint. Each is an `Endpoint` with connections of its own, for which the
    /// caller provides a socket and a lock.
    ///
    /// Keys, used tokens, rates, budgets and limits of handshakes in progress are common to all shards. So is
    /// the time that callers pass. Connection IDs name their shard, if the generator has a byte for it. A
    /// datagram may arrive at any shard: see [`Endpoint::poll_misrouted`]. Later changes of settings must be made
    /// for each shard.
    ///
    /// `seed` must come from a cryptographic random source. With one shard the result is that of
    /// [`Endpoint::new`].
    ///
    /// # Panics
    ///
    /// Panics unless `count` is 1 to [`MAX_SHARDS`].
    pub fn shards(
        config: EndpointConfig,
        server: Option<Arc<ServerConfig>>,
        seed: [u8; 32],
        count: usize,
    ) -> Vec<Self> {
        assert!((1..=MAX_SHARDS).contains(&count), "{count} shards");
        let mut seeds = Rng::new(seed.map(|byte| byte.rotate_left(4) ^ 0x5a));
        let secrets: Vec<_> = std::iter::once(seed)
            .chain(std::iter::repeat_with(|| seeds.array()))
            .take(count)
            .map(Secrets::new)
            .collect();
        let shared = Shared::new(&config, server.as_deref(), &secrets[0], count);
        let shared = Arc::new(shared);
        let count = u16::try_from(count).expect("checked above");
        let each = (0..count).zip(secrets).map(|(number, secrets)| {
            let id = ShardId { number, count };
            Self::of_shard(id, config.clone(), server.clone(), secrets, shared.clone())
        });
        each.collect()
    }

    /// Returns the next datagrams that belong to another shard. Poll them after each call of
    /// [`Endpoint::handle_datagrams`]; an endpoint with one shard has none.
    pub fn poll_misrouted(&mut self) -> Option<MisroutedBatch> {
        self.shard.poll()
    }

    /// Processes datagrams that another shard has received.
    pub fn handle_misrouted(&mut self, now: Time, batch: MisroutedBatch) {
        self.shard.on_received(&batch);
        let (arrived, segment_size, mut bytes) = batch.into_parts();
        let arrived = Arrived {
            now,
            is_handed_on: true,
            ..arrived
        };
        self.handle_batch(arrived, &mut bytes, segment_size);
    }

    /// Counts datagrams that could not be forwarded.
    pub fn on_misrouted_dropped(&mut self, count: usize) {
        self.shard.on_dropped(count);
    }

    /// Removes the routes of this shard, which has failed, from the table of all shards. Clients of its
    /// handshakes become new clients of the other shards.
    pub fn leave_shards(&mut self) {
        self.router.leave();
    }

    /// Forwards a packet without an owner in this shard, if another shard owns it or may own it. Returns
    /// false if it must be processed here.
    #[inline]
    pub(super) fn forward(&mut self, arrived: Arrived, datagram: &[u8], packet: &Packet) -> bool {
        if !self.shard.may_forward(arrived) {
            return false;
        }
        let path = arrived.path;
        let known = self.router.find_elsewhere(packet, &path);
        let to = known.or_else(|| match packet.kind {
            // These may have an ID that the client has chosen.
            PacketKind::Initial | PacketKind::ZeroRtt if self.server.is_some() => None,
            _ => self
                .router
                .find_reset_elsewhere(path.peer, datagram)
                .or_else(|| self.router.shard_of(packet)),
        });
        self.shard.forward(to, arrived, datagram)
    }

    /// Returns true if another shard may have a connection with the ID of this packet.
    pub(super) fn may_be_elsewhere(&self, packet: &Packet, path: &FourTuple) -> bool {
        let is_chosen_by_client = matches!(packet.kind, PacketKind::Initial | PacketKind::ZeroRtt);
        self.router.find_elsewhere(packet, path).is_some()
            || (!is_chosen_by_client && self.router.shard_of(packet).is_some())
    }

    /// Forwards an Initial packet that is not the first one of a new client.
    pub(super) fn forward_initial(
        &mut self,
        arrived: Arrived,
        datagram: &[u8],
        packet: &Packet,
    ) -> bool {
        let to = self.router.shard_of(packet);
        self.shard.may_forward(arrived) && self.shard.forward(to, arrived, datagram)
    }

    /// Forwards a datagram that resets a connection of another shard.
    pub(super) fn forward_reset(&mut self, arrived: Arrived, datagram: &[u8]) -> bool {
        if !self.shard.may_forward(arrived) {
            return false;
        }
        let peer = arrived.path.peer;
        let to = self.router.find_reset_elsewhere(peer, datagram);
        self.shard.forward(to, arrived, datagram)
    }
}
