//! Several shards of one endpoint, which share what must hold for all of them.

use std::sync::Arc;

use courser_base::Mutex;

use crate::config::{EndpointConfig, ServerConfig};
use crate::endpoint::admission::shard_handshakes::ShardHandshakes;
use crate::endpoint::router::tables::RouteTables;
use crate::endpoint::table::memory::Ledger;
use crate::endpoint::{Endpoint, KEPT_CHUNKS};
use crate::rng::Rng;
use crate::stream::ChunkPool;

/// Maximum of shards of one endpoint: a byte of each connection ID names the shard (limit K221).
pub const MAX_SHARDS: usize = 256;

/// 64 KiB buffers that a shard keeps, even if its part of those of the endpoint is less.
const LEAST_KEPT_CHUNKS: usize = 8;

impl Endpoint {
    /// Creates the shards of one endpoint. Each is an `Endpoint` with connections of its own, and with a
    /// socket and a lock that the caller gives it.
    ///
    /// Keys, used tokens, rates, budgets and limits of handshakes in progress are common to all shards. So is
    /// the time that callers pass. Connection IDs name their shard, if the generator has a place for
    /// that. A datagram may arrive at any shard: see [`Endpoint::poll_stray`]. Settings that change
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
        let mut all: Vec<Self> = std::iter::once(seed)
            .chain(std::iter::repeat_with(|| seeds.array()))
            .take(count)
            .map(|seed| Self::new(config.clone(), server.clone(), seed))
            .collect();
        if count == 1 {
            return all;
        }
        let table = Arc::new(Mutex::new(RouteTables::new(seeds.array())));
        let ledger = Arc::new(Ledger::new(count));
        let shards = u16::try_from(count).expect("checked above");
        for (number, shard) in (0..shards).zip(&mut all) {
            let has_place = shard.ids.join(number, shards);
            shard.routing.join(number, !has_place, table.clone());
            shard.memory.join(usize::from(number), ledger.clone());
            shard.pool = ChunkPool::new((KEPT_CHUNKS / count).max(LEAST_KEPT_CHUNKS));
            (shard.shard, shard.shards) = (number, shards);
        }
        if let Some((first, others)) = all.split_first_mut() {
            others.iter_mut().for_each(|it| it.share_limits_of(first));
        }
        all
    }

    /// Makes limits for clients without a connection those of another shard.
    fn share_limits_of(&mut self, first: &Self) {
        self.handshakes = ShardHandshakes::new(first.handshakes.all());
        self.creation = first.creation.clone();
        self.filter = first.filter.clone();
        self.reset_limiter = first.reset_limiter.clone();
        self.reply_limiter = first.reply_limiter.clone();
        self.budget = first.budget.clone();
    }
}
