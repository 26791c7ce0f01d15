//! The state that the shards of an endpoint share.

use courser_base::Mutex;

use super::admission::creation_limiter::CreationLimiter;
use super::admission::handshake_counts::HandshakeCounts;
use super::admission::handshakes::{Handshakes, limits_of};
use super::admission::tokens::token_filter::TokenFilter;
use super::admission::tokens::validation_token::SystemSeconds;
use super::memory::ledger::Ledger;
use super::router::owner::Owner;
use super::router::tables::RouteTables;
use super::secrets::Secrets;
use super::shards::ShardId;
use super::stateless::late_ids::LateIds;
use super::stateless::reply_limiter::ReplyLimiter;
use crate::config::{EndpointConfig, ServerConfig};
use crate::flow::WindowBudget;

/// The state that is common to all shards of an endpoint: limits, used tokens, routes and memory. An
/// endpoint with one shard has it too.
///
/// Lock order: a thread holds at most one of these locks, for the length of one call. If two are ever
/// needed at once, they are taken in the order of the fields. The lock of a shard, which its driver
/// holds, comes before all of them.
#[derive(Debug)]
pub struct Shared {
    /// The routes that any shard may need: the shard, and the owner in it.
    pub routes: Mutex<RouteTables<(u16, Owner)>>,
    /// The handshakes in progress of all shards, and their limits.
    pub handshakes: Mutex<Handshakes>,
    /// The rates at which sources open connections.
    pub creation: Mutex<CreationLimiter>,
    /// Tokens that clients have used.
    pub used_tokens: Mutex<TokenFilter>,
    /// The rates of stateless resets.
    pub resets: Mutex<ReplyLimiter>,
    /// The rates of Version Negotiation, Retry and refusals.
    pub replies: Mutex<ReplyLimiter>,
    /// The IDs that peers have retired during the last seconds.
    pub late_ids: Mutex<LateIds>,
    /// The growth of receive windows. It has no lock.
    pub windows: WindowBudget,
    /// The memory that each shard holds. It has no lock.
    pub memory: Ledger,
    /// The handshakes in progress of each shard. They have no lock.
    counts: Box<[HandshakeCounts]>,
}

impl Shared {
    /// Creates the state of `shards` shards, with the secrets of the first of them.
    pub fn new(
        config: &EndpointConfig,
        server: Option<&ServerConfig>,
        secrets: &Secrets,
        shards: usize,
    ) -> Self {
        let limits = limits_of(config, server);
        let now = SystemSeconds(config.unix_seconds_at_epoch);
        Self {
            routes: Mutex::new(RouteTables::new(secrets.common_routes)),
            handshakes: Mutex::new(Handshakes::new(limits, secrets.handshakes)),
            creation: Mutex::new(CreationLimiter::new(secrets.creation)),
            used_tokens: Mutex::new(TokenFilter::new(TokenFilter::DEFAULT_CAPACITY, now)),
            resets: Mutex::new(ReplyLimiter::new(config.reset_limits, secrets.resets)),
            replies: Mutex::new(ReplyLimiter::new(config.reply_limits, secrets.replies)),
            late_ids: Mutex::new(LateIds::default()),
            windows: WindowBudget::new(config.receive_budget),
            memory: Ledger::new(shards),
            counts: std::iter::repeat_with(HandshakeCounts::default)
                .take(shards)
                .collect(),
        }
    }

    /// Returns the handshakes in progress of one shard.
    pub fn counts(&self, shard: ShardId) -> &HandshakeCounts {
        &self.counts[usize::from(shard.number)]
    }

    /// Creates the state of this many shards, for tests of single parts.
    #[cfg(test)]
    pub fn of_test(shards: u16) -> std::sync::Arc<Self> {
        let config = EndpointConfig::from_seed([1; 32]);
        let secrets = Secrets::new([2; 32]);
        std::sync::Arc::new(Self::new(&config, None, &secrets, usize::from(shards)))
    }
}
