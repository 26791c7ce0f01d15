//! Address validation tokens (RFC 9000 §8.1).

pub mod address_token;
pub mod token_filter;
pub mod validation_token;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use courser_base::foreign::Foreign;
use courser_base::{ScopedIp, Time};
use courser_crypto::TokenKey;
use courser_wire::{ConnectionId, Version};

use self::address_token::RetryToken;
use self::validation_token::{SystemSeconds, ValidationToken};
use super::client::Client;
use crate::config::{EndpointConfig, TimeOfDay};
use crate::rng::Rng;

/// Issues the tokens of an endpoint. Used ones are recorded for all shards, in
/// [`Shared::used_tokens`](crate::endpoint::shared::Shared::used_tokens).
pub struct Tokens {
    pub(super) key: TokenKey,
    /// The clock of the program.
    clock: Option<Foreign<Arc<dyn TimeOfDay>, true>>,
    /// The time of the system at [`Time::ZERO`].
    pub(in crate::endpoint) epoch: SystemSeconds,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is left out, so that it does not reach logs.
        f.debug_struct("Tokens")
            .field("epoch", &self.epoch)
            .field("has_clock", &self.clock.is_some())
            .finish_non_exhaustive()
    }
}

impl Tokens {
    /// Creates the tokens of an endpoint.
    pub fn new(config: &EndpointConfig) -> Self {
        Self {
            key: TokenKey::new(&config.token_key),
            clock: None,
            epoch: SystemSeconds(config.unix_seconds_at_epoch),
        }
    }

    /// Changes the key, and the clock if the program has one.
    pub fn set(&mut self, key: &[u8; 32], clock: Option<Arc<dyn TimeOfDay>>) {
        self.key = TokenKey::new(key);
        self.clock = clock.map(Foreign::new);
    }

    /// Returns the time of the system at `now`, or that of the clock of the program.
    pub fn seconds(&self, now: Time) -> SystemSeconds {
        if let Some(clock) = &self.clock
            && let Ok(time) = catch_unwind(AssertUnwindSafe(|| clock.since_1970()))
        {
            return SystemSeconds(time.as_secs());
        }
        SystemSeconds(self.epoch.0 + now.as_nanos() / 1_000_000_000)
    }

    /// Creates the token of a Retry packet to this client.
    pub fn retry(
        &self,
        now: Time,
        to: &Client,
        retry_source: ConnectionId,
        rng: &mut Rng,
    ) -> Vec<u8> {
        let token = RetryToken {
            address: to.place.tuple.peer,
            original_destination: to.destination,
            retry_source,
            version: to.version,
            issued: self.seconds(now),
        };
        token.seal(&self.key, rng)
    }

    /// Creates `count` tokens for later connections of a client.
    pub fn validation(
        &self,
        now: Time,
        ip: ScopedIp,
        version: Version,
        count: u32,
        rng: &mut Rng,
    ) -> Vec<Bytes> {
        let seconds = self.seconds(now);
        (0..count)
            .map(|_| {
                let token = ValidationToken::new(ip, version, seconds, rng);
                Bytes::from(token.seal(&self.key, rng))
            })
            .collect()
    }
}
