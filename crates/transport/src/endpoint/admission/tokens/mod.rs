//! Address validation tokens (RFC 9000 §8.1).

pub mod address_token;
pub mod token_filter;
pub mod validation_token;

use bytes::Bytes;
use courser_base::{ScopedIp, Time};
use courser_crypto::TokenKey;
use courser_wire::{ConnectionId, Version};

use self::address_token::RetryToken;
use self::validation_token::{SystemSeconds, ValidationToken};
use super::client::Client;
use crate::config::EndpointConfig;
use crate::rng::Rng;

/// Issues the tokens of an endpoint. Used ones are recorded for all shards, in
/// [`Shared::used_tokens`](crate::endpoint::shared::Shared::used_tokens).
#[derive(Debug)]
pub struct Tokens {
    pub(super) key: TokenKey,
    /// The time of the system at [`Time::ZERO`].
    pub(in crate::endpoint) epoch: SystemSeconds,
}

impl Tokens {
    /// Creates the tokens of an endpoint.
    pub fn new(config: &EndpointConfig) -> Self {
        Self {
            key: TokenKey::new(&config.token_key),
            epoch: SystemSeconds(config.unix_seconds_at_epoch),
        }
    }

    /// Returns the time of the system at `now`.
    pub fn seconds(&self, now: Time) -> SystemSeconds {
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
