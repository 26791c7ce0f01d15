//! The creation of the shards of an endpoint.

use std::sync::Arc;

use super::ShardId;
use super::shared::Shared;
use crate::config::{EndpointConfig, ServerConfig};
use crate::endpoint::Endpoint;
use crate::endpoint::secrets::Secrets;
use crate::rng::Rng;

/// Maximum of shards of one endpoint: a byte of each connection ID names the shard (limit K221).
pub const MAX_SHARDS: usize = 256;

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
}
