//! Settings of an endpoint.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use courser_quic as quic;

use super::known_versions;
use crate::ConfigError;
use crate::cid::{self, ConnectionIdGenerator};
use crate::crypto::{HmacKey, derived_key};
use crate::unsupported::note;

/// Settings of an endpoint, for all of its connections.
#[derive(Clone)]
pub struct EndpointConfig {
    reset_key: Option<Arc<dyn HmacKey>>,
    max_udp_payload_size: u16,
    cid_factory: Option<Arc<CidFactory>>,
    pub(super) supported_versions: Option<Vec<u32>>,
    grease_quic_bit: bool,
    min_reset_interval: Option<Duration>,
    rng_seed: Option<[u8; 32]>,
}

type CidFactory = dyn Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync;

impl Default for EndpointConfig {
    /// Creates settings with random keys.
    fn default() -> Self {
        Self {
            reset_key: None,
            max_udp_payload_size: MAX_UDP_PAYLOAD,
            cid_factory: None,
            supported_versions: None,
            grease_quic_bit: true,
            min_reset_interval: None,
            rng_seed: None,
        }
    }
}

/// The largest payload of UDP. RFC 9000 §18.2.
const MAX_UDP_PAYLOAD: u16 = 65_527;

impl EndpointConfig {
    /// Creates settings with a key for stateless resets.
    pub fn new(reset_key: Arc<dyn HmacKey>) -> Self {
        Self {
            reset_key: Some(reset_key),
            ..Self::default()
        }
    }

    /// Sets how the endpoint makes its connection IDs. `factory` is called once for each endpoint. By default
    /// they are 8 random bytes.
    pub fn cid_generator<F: Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static>(
        &mut self,
        factory: F,
    ) -> &mut Self {
        self.cid_factory = Some(Arc::new(factory));
        self
    }

    /// Sets the key from which the tokens of stateless resets are derived.
    pub fn reset_key(&mut self, key: Arc<dyn HmacKey>) -> &mut Self {
        self.reset_key = Some(key);
        self
    }

    /// Sets the largest payload of UDP that peers may send, 1200 to 65 527 bytes. Default 65 527.
    ///
    /// # Errors
    /// Returns [`ConfigError::OutOfBounds`] for other values.
    pub fn max_udp_payload_size(&mut self, value: u16) -> Result<&mut Self, ConfigError> {
        if !(1200..=MAX_UDP_PAYLOAD).contains(&value) {
            return Err(ConfigError::OutOfBounds);
        }
        self.max_udp_payload_size = value;
        Ok(self)
    }

    /// Returns the largest payload of UDP that peers may send.
    pub fn get_max_udp_payload_size(&self) -> u64 {
        self.max_udp_payload_size.into()
    }

    /// Sets the versions of QUIC that a server accepts. courser knows 1 and 2 (0x6b3343cf); others are left
    /// out. By default both are accepted.
    pub fn supported_versions(&mut self, supported_versions: Vec<u32>) -> &mut Self {
        if known_versions(&supported_versions).len() < supported_versions.len() {
            note("EndpointConfig::supported_versions (drafts of QUIC)");
        }
        self.supported_versions = Some(supported_versions);
        self
    }

    /// Accepts packets with any value of the fixed bit (RFC 9287). Default on.
    pub fn grease_quic_bit(&mut self, value: bool) -> &mut Self {
        self.grease_quic_bit = value;
        self
    }

    /// Sets the time between two stateless resets. By default 200 a second go to one network, and 2000 to all.
    pub fn min_reset_interval(&mut self, value: Duration) -> &mut Self {
        self.min_reset_interval = Some(value);
        self
    }

    /// Derives the keys for resets and tokens from a seed. Other random numbers are those of the system.
    pub fn rng_seed(&mut self, seed: Option<[u8; 32]>) -> &mut Self {
        self.rng_seed = seed;
        self
    }

    /// Returns the settings for courser. `seed` is random.
    pub(crate) fn build(&self, seed: [u8; 32], unix_time: Duration) -> quic::EndpointConfig {
        let mut config = quic::EndpointConfig::from_seed(self.rng_seed.unwrap_or(seed));
        config.unix_seconds_at_epoch = unix_time.as_secs();
        config.memory_budget = quic::default_memory_budget();
        config.receive_budget = config.receive_budget.min(config.memory_budget);
        config.max_udp_payload_size = self.max_udp_payload_size;
        config.grease_quic_bit = self.grease_quic_bit;
        if let Some(key) = &self.reset_key {
            config.reset_key = derived_key(&**key);
        }
        if let Some(factory) = &self.cid_factory {
            config.connection_ids = Some(cid::adapted(factory()));
        }
        if let Some(interval) = self.min_reset_interval {
            let per_second = 1_000_000_000 / interval.as_nanos().max(1000);
            let rate = u32::try_from(per_second)
                .unwrap_or(u32::MAX)
                .clamp(1, 1_000_000);
            config.reset_limits.per_prefix = config.reset_limits.per_prefix.min(rate);
            config.reset_limits.overall = rate;
        }
        config
    }
}

impl fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys are left out, so that they do not reach logs.
        f.debug_struct("EndpointConfig")
            .field("max_udp_payload_size", &self.max_udp_payload_size)
            .field("supported_versions", &self.supported_versions)
            .field("grease_quic_bit", &self.grease_quic_bit)
            .finish_non_exhaustive()
    }
}
