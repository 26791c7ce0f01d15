//! Settings of an endpoint, shared by all its connections.

use std::sync::Arc;

use super::ReplyLimits;
use super::ServerConfig;
use super::transport::ConfigError;
use crate::cid::{ConnectionIdGenerator, RandomIdGenerator};

/// Settings of an endpoint.
#[derive(Clone)]
pub struct EndpointConfig {
    /// Secret from which stateless reset tokens are derived. Keep it over restarts, so that peers
    /// of a crashed server detect the loss at once (RFC 9000 §10.3.2).
    ///
    /// Endpoints that run at the same time must have different keys (RFC 9000 §21.11), unless
    /// `connection_ids` is a generator that rejects the IDs of the others.
    pub reset_key: [u8; 32],
    /// Secret that seals address tokens.
    pub token_key: [u8; 32],
    /// Length of the connection IDs we issue, 0 to 20 bytes. Default 8. Zero is for clients with
    /// one connection at a time per peer and socket. Unused if there are `connection_ids`.
    pub connection_id_len: usize,
    /// The generator of the connection IDs that we issue. Default `None`: they are random bytes.
    pub connection_ids: Option<Arc<dyn ConnectionIdGenerator>>,
    /// Largest UDP payload we accept, announced to the peer. Default 65 527.
    pub max_udp_payload_size: u16,
    /// Bytes by which the receive windows of all connections may grow in total beyond their initial
    /// size. Default 1 GiB, and in the facade half of `memory_budget` if that is more. One connection gets an
    /// eighth of what the others have left, and its window grows no further (limit K16).
    pub receive_budget: u64,
    /// Bytes that all connections together may hold for their peers: sent but unacknowledged data,
    /// received but unread data, datagrams, packet records and handshakes (limit K81). At least 1
    /// MiB. Default 1 GiB; endpoints made by the facade use a quarter of the memory of the machine
    /// or its control group. When the budget runs short, connections accept less from their
    /// applications, windows stop growing and clients are refused. As the last resort the endpoint
    /// closes the connection that holds the most bytes for the least progress.
    pub memory_budget: u64,
    /// Rates of Version Negotiation, Retry and refusals. Default 10 000 a second for one network
    /// and 40 000 for all; at most 1 000 000. Zero sends none (limit K19).
    pub reply_limits: ReplyLimits,
    /// Rates of stateless resets. Default 200 a second for one network and 2000 for all; at most
    /// 1 000 000. Zero sends none (limit K18).
    pub reset_limits: ReplyLimits,
    /// Unix time in seconds at [`courser_base::Time::ZERO`]. Token lifetimes count from it, so that
    /// tokens survive a restart.
    pub unix_seconds_at_epoch: u64,
    /// Accepts packets whose QUIC bit is 0, announces this to peers (grease_quic_bit), and clears the bit
    /// of half of the packets, at random, to peers that announce it too, so that networks do not rely on it
    /// (RFC 9287). Default off.
    ///
    /// Leave it off if the socket carries other protocols, such as STUN or RTP: the bit distinguishes
    /// QUIC from them (RFC 9443).
    pub grease_quic_bit: bool,
    /// Adds reserved versions and transport parameters, so that peers keep ignoring them.
    pub grease: bool,
}

impl EndpointConfig {
    /// Creates the default settings with keys derived from a seed, which must come from a
    /// cryptographic random source.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        let mut rng = crate::rng::Rng::new(seed);
        let (mut reset_key, mut token_key) = ([0; 32], [0; 32]);
        rng.fill(&mut reset_key);
        rng.fill(&mut token_key);
        Self {
            reset_key,
            token_key,
            connection_id_len: 8,
            connection_ids: None,
            max_udp_payload_size: 65_527,
            receive_budget: 1 << 30,
            memory_budget: 1 << 30,
            reply_limits: ReplyLimits::HANDSHAKE,
            reset_limits: ReplyLimits::STATELESS_RESET,
            unix_seconds_at_epoch: 0,
            grease_quic_bit: false,
            grease: true,
        }
    }

    /// Returns the length of our connection IDs and the offset of the byte in them that can name a shard;
    /// `None` if they have no such byte.
    pub fn shard_place(&self) -> Option<(usize, usize)> {
        let (length, offset) = match &self.connection_ids {
            Some(generator) => (generator.length(), generator.shard_offset()),
            None => {
                let generator = RandomIdGenerator::new(self.connection_id_len).unwrap_or_default();
                (generator.length(), generator.shard_offset())
            }
        };
        let offset = offset.filter(|offset| *offset < length);
        offset.map(|offset| (length, offset))
    }

    /// Checks that every value is within its range.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] contains the field, its value and the allowed range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let check = super::transport::check;
        self.check_memory()?;
        let rates = [
            ("reply_limits.per_prefix", self.reply_limits.per_prefix),
            ("reply_limits.overall", self.reply_limits.overall),
            ("reset_limits.per_prefix", self.reset_limits.per_prefix),
            ("reset_limits.overall", self.reset_limits.overall),
        ];
        for (field, rate) in rates {
            check(field, rate.into(), 0, MAX_REPLY_RATE)?;
        }
        let len = self.connection_id_len as u64;
        check("connection_id_len", len, 0, 20)?;
        let generator = self.connection_ids.as_ref();
        let len = generator.map_or(0, |generator| generator.length() as u64);
        check("connection_ids.length", len, 0, 20)?;
        let udp = u64::from(self.max_udp_payload_size);
        check("max_udp_payload_size", udp, 1200, 65_527)
    }

    fn check_memory(&self) -> Result<(), ConfigError> {
        super::transport::check("memory_budget", self.memory_budget, MIN_MEMORY, u64::MAX)
    }

    /// Checks the settings of a server as [`ServerConfig::validate`] does, and the memory budget that
    /// its connections share. The endpoint calls this before it accepts a connection.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] contains the field, its value and the allowed range.
    pub fn validate_server(&self, server: &ServerConfig) -> Result<(), ConfigError> {
        server.validate()?;
        self.check_memory()
    }
}

/// The highest rate of stateless replies: more than one core can send.
const MAX_REPLY_RATE: u64 = 1_000_000;

/// The smallest memory budget: enough for a few active connections.
const MIN_MEMORY: u64 = 1 << 20;

impl std::fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The keys are left out, so that they do not reach logs.
        f.debug_struct("EndpointConfig")
            .field("connection_id_len", &self.connection_id_len)
            .field("max_udp_payload_size", &self.max_udp_payload_size)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::identity::server_tls;

    #[test]
    fn any_part_of_the_memory_budget_may_be_for_handshakes() {
        let mut config = EndpointConfig::from_seed([1; 32]);
        config.memory_budget = 1 << 20;
        let mut server = ServerConfig::new(server_tls(&[b"test"]));
        for bytes in [None, Some(0), Some(1), Some(1 << 20), Some(u64::MAX)] {
            server.half_open_bytes = bytes;
            assert_eq!(config.validate_server(&server), Ok(()), "{bytes:?}");
        }
        config.memory_budget = 0;
        let error = config.validate_server(&server).expect_err("no memory");
        assert_eq!(error.field, "memory_budget");
    }

    #[test]
    fn rates_of_replies_are_checked() {
        let mut config = EndpointConfig::from_seed([1; 32]);
        config.reply_limits.per_prefix = 0;
        config.reset_limits.overall = 1_000_000;
        assert_eq!(config.validate(), Ok(()), "none, and the most");
        config.reset_limits.overall = 1_000_001;
        let error = config.validate().expect_err("too many").to_string();
        for part in ["reset_limits.overall", "1000001", "0 to 1000000"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
