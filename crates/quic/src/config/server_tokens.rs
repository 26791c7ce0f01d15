//! Settings of the tokens with which clients validate their address. RFC 9000 §8.1.

use std::sync::Arc;
use std::time::Duration;

use courser_transport::{TimeOfDay, TokenLog};

use super::ServerConfig;

impl ServerConfig {
    /// Sets the key that seals tokens, which must be random and secret. Servers with the same key accept each other's
    /// tokens, and so does one that was restarted. `None`, the default, is the key of the
    /// [`EndpointConfig`](crate::EndpointConfig).
    #[must_use]
    pub fn token_key(mut self, key: Option<[u8; 32]>) -> Self {
        self.settings.token_key = key;
        self
    }

    /// Sets the time for which the token of a Retry packet is valid, 1 s to 10 years. Default 10 s.
    #[must_use]
    pub fn retry_token_lifetime(mut self, lifetime: Duration) -> Self {
        self.settings.retry_token_lifetime = lifetime;
        self
    }

    /// Sets the time for which the tokens are valid that clients are given for later connections, 1 s to 10 years.
    /// Default 24 hours.
    #[must_use]
    pub fn new_token_lifetime(mut self, lifetime: Duration) -> Self {
        self.settings.new_token_lifetime = lifetime;
        self
    }

    /// Sets the log of the tokens that clients have used. `None`, the default, is that of the endpoint, in memory.
    #[must_use]
    pub fn token_log(mut self, log: Option<Arc<dyn TokenLog>>) -> Self {
        self.settings.token_log = log;
        self
    }

    /// Sets the clock by which tokens are issued and expire. `None`, the default, is that of the runtime.
    #[must_use]
    pub fn time_of_day(mut self, clock: Option<Arc<dyn TimeOfDay>>) -> Self {
        self.settings.time_of_day = clock;
        self
    }
}
