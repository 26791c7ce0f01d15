//! An endpoint as one of several shards: its creation, and datagrams that arrive at another shard than
//! that of their connection.
//!
//! The system merges datagrams of one address whatever their IDs are, the hash of an address changes when
//! a client moves, and a stateless reset has random bytes where the ID would be. Such a datagram is handed
//! on to its owner once, and never again.

use std::sync::Arc;

use courser_base::Time;
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
    /// Creates the shards of one endpoint. Each is an `Endpoint` with connections of its own, and with a
    /// socket and a lock that the caller gives it.
    ///
    /// Keys, used tokens, rates, budgets and limits of handshakes in progress are common to all shards. So is
    /// the time that callers pass. Connection IDs name their shard, if the generator has a place for
    /// that. A datagram may arrive at any shard: see [`Endpoint::poll_misrouted`]. Settings that change
    /// later are set for each shard.
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

    /// Returns the next datagrams that have arrived for another shard. Read them after each call of
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

    /// Counts datagrams that could not be handed on.
    pub fn on_misrouted_dropped(&mut self, count: usize) {
        self.shard.on_dropped(count);
    }

    /// Gives up the routes of this shard, which has failed: clients whose handshake it began are new clients
    /// of the others.
    pub fn leave_shards(&mut self) {
        self.router.leave();
    }

    /// Hands a packet without an owner in this shard on, if another shard owns it or may own it. Returns
    /// false if it has to be handled here.
    #[inline]
    pub(super) fn hand_on(&mut self, arrived: Arrived, datagram: &[u8], packet: &Packet) -> bool {
        if !self.shard.may_hand_on(arrived) {
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
        self.shard.hand_on(to, arrived, datagram)
    }

    /// Hands an Initial packet on that is not the first one of a new client.
    pub(super) fn hand_on_initial(
        &mut self,
        arrived: Arrived,
        datagram: &[u8],
        packet: &Packet,
    ) -> bool {
        let to = self.router.shard_of(packet);
        self.shard.may_hand_on(arrived) && self.shard.hand_on(to, arrived, datagram)
    }

    /// Hands a datagram on that resets a connection of another shard.
    pub(super) fn hand_on_reset(&mut self, arrived: Arrived, datagram: &[u8]) -> bool {
        if !self.shard.may_hand_on(arrived) {
            return false;
        }
        let peer = arrived.path.peer;
        let to = self.router.find_reset_elsewhere(peer, datagram);
        self.shard.hand_on(to, arrived, datagram)
    }
}
