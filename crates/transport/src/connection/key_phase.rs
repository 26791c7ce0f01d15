//! The 1-RTT keys: installed once, updated by themselves or on request. RFC 9001 §6.

use std::fmt;

use courser_base::{Side, Time};
use courser_crypto::{ForgeryCounter, OneRttKeys, SecretPair};
use courser_telemetry::{KeyUpdated, Record};

use super::Connection;
use super::suspicion::HASTY_UPDATE;
use crate::config::TransportConfig;
use crate::space::SpaceId;

/// The 1-RTT keys and what belongs to them.
#[derive(Debug, Default)]
pub(crate) struct KeyPhase {
    pub(crate) keys: Option<Box<OneRttKeys>>,
    /// Secrets of the keys, before the keys are of use. A server cannot read 1-RTT packets
    /// before the handshake is complete, nor send them to an address that nobody has proven. Until
    /// then a half-open handshake costs neither their memory nor the work.
    secrets: Option<Box<Secrets>>,
    /// Packets that did not authenticate, over the whole connection (§6.6).
    pub(crate) forgeries: ForgeryCounter,
    /// When the previous receive key is erased.
    pub(crate) drop_previous_at: Option<Time>,
    /// When the peer last began an update.
    peer_began_at: Option<Time>,
}

/// The secrets of the first 1-RTT keys.
#[derive(Debug)]
struct Secrets {
    pair: SecretPair,
    side: Side,
    update_after: u64,
}

impl KeyPhase {
    pub(crate) fn install(&mut self, secrets: SecretPair, side: Side, config: &TransportConfig) {
        self.forgeries.on_suite(secrets.local.suite());
        self.secrets = Some(Box::new(Secrets {
            pair: secrets,
            side,
            update_after: config.key_update_after,
        }));
    }

    /// True once TLS has made the secrets. [`Connection::derive_keys`] makes keys of them.
    pub(crate) fn has_keys(&self) -> bool {
        self.keys.is_some() || self.secrets.is_some()
    }

    /// True while the keys are still to be derived.
    #[inline]
    pub(crate) fn is_underived(&self) -> bool {
        self.secrets.is_some()
    }

    #[cold]
    pub(crate) fn derive(&mut self) {
        if let Some(secrets) = self.secrets.take() {
            let Secrets {
                pair,
                side,
                update_after,
            } = *secrets;
            let mut keys = OneRttKeys::new(pair, side);
            let limit = keys.suite().confidentiality_limit();
            keys.set_limits(update_after, limit);
            self.keys = Some(Box::new(keys));
        }
    }
}

/// Why a key update cannot start now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyUpdateBlocked {
    /// The handshake is not confirmed (§6.1).
    NotConfirmed,
    /// The peer has not acknowledged a packet of the current phase (§6.1).
    PreviousUnacknowledged,
}

impl fmt::Display for KeyUpdateBlocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotConfirmed => "keys can be updated only after the handshake is confirmed",
            Self::PreviousUnacknowledged => {
                "the peer has not acknowledged a packet of the current key phase yet"
            }
        })
    }
}

impl std::error::Error for KeyUpdateBlocked {}

impl Connection {
    /// Derives the 1-RTT keys if they are of use from now on.
    #[inline]
    pub(crate) fn derive_keys(&mut self) {
        if self.key_phase.is_underived() && (self.may_send_application() || !self.state.is_open()) {
            self.key_phase.derive();
        }
    }

    /// Updates the 1-RTT keys.
    ///
    /// # Errors
    ///
    /// When the rules do not allow an update yet; nothing changes then.
    pub fn initiate_key_update(&mut self, now: Time) -> Result<(), KeyUpdateBlocked> {
        if !self.state.is_confirmed() {
            return Err(KeyUpdateBlocked::NotConfirmed);
        }
        self.derive_keys();
        let next = self.recovery.first_unused_number();
        let Some(keys) = &mut self.key_phase.keys else {
            return Err(KeyUpdateBlocked::NotConfirmed);
        };
        if !keys.is_update_acknowledged() {
            return Err(KeyUpdateBlocked::PreviousUnacknowledged);
        }
        keys.update(next);
        // An empty packet would not show the peer the new phase.
        self.recovery.request_ping(SpaceId::Application);
        self.stats.key_updates += 1;
        self.record_key_update(now, false);
        Ok(())
    }

    /// Updates the keys when they have sealed enough packets (limit K22), but not while the peer
    /// may still keep its old receive keys and has no place for newer ones (§6.5).
    pub(crate) fn update_keys_if_due(&mut self, now: Time) {
        let due = self
            .key_phase
            .keys
            .as_ref()
            .is_some_and(|keys| keys.should_update());
        if due && self.key_phase.drop_previous_at.is_none() {
            // While the rules do not allow it the next batch tries again; the hard stop is far.
            let _ = self.initiate_key_update(now);
        }
    }

    /// The peer's packets have a new key: it began an update, or followed ours. `before` is the
    /// phase of our packets until now.
    ///
    /// Returns what the update costs in frames without progress. A peer waits for an
    /// acknowledgement before the next update (§6.1), and should wait for three probe timeouts
    /// (§6.5); one that waits for less than one makes us derive keys for nothing.
    pub(crate) fn on_peer_keys_updated(&mut self, now: Time, before: bool) -> u32 {
        let pto = self.recovery.pto();
        self.key_phase.drop_previous_at = Some(now + pto.saturating_mul(3));
        let keys = self.key_phase.keys.as_ref();
        if keys.is_none_or(|keys| keys.key_phase() == before) {
            return 0;
        }
        self.stats.key_updates += 1;
        self.record_key_update(now, true);
        let last = self.key_phase.peer_began_at.replace(now);
        match last.is_some_and(|last| now - last < pto) {
            true => HASTY_UPDATE,
            false => 0,
        }
    }

    fn record_key_update(&mut self, now: Time, by_peer: bool) {
        let key_phase = self
            .key_phase
            .keys
            .as_ref()
            .is_some_and(|keys| keys.key_phase());
        self.tap.record(now, || {
            Record::KeyUpdated(KeyUpdated { key_phase, by_peer })
        });
    }

    /// Old receive keys stay for packets that were overtaken (§6.5).
    pub(crate) fn drop_previous_keys(&mut self, now: Time) {
        if self.key_phase.drop_previous_at.is_some_and(|at| at <= now) {
            self.key_phase.drop_previous_at = None;
            if let Some(keys) = &mut self.key_phase.keys {
                keys.drop_previous();
            }
        }
    }
}
