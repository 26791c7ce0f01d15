//! The 1-RTT keys: installed once, updated automatically or on request. RFC 9001 §6.

use std::fmt;
use std::time::Duration;

use courser_base::{Side, Time};
use courser_crypto::{OneRttKeys, SecretPair, StoredKeys};

/// Frames without progress as which a key update counts if it follows the last within one probe timeout
/// without the delay of acknowledgements (limit K96). It costs the derivation of three secrets and two packet keys, several times the work of a
/// small packet, so the progress of one packet must not offset it.
pub(crate) const HASTY_UPDATE: u32 = 8;
/// The idle time after which a connection frees its keys. Deriving them again takes some microseconds.
const IDLE_BEFORE_STORE: Duration = Duration::from_secs(1);
/// The maximum number of times that [`IDLE_BEFORE_STORE`] is multiplied.
const MAX_TOO_SOON: u8 = 6;

/// The 1-RTT keys and the times of their updates.
#[derive(Debug, Default)]
pub(super) struct OneRtt {
    pub(super) keys: Option<Box<OneRttKeys>>,
    /// The keys as secrets, before their first use and while the connection is idle. A server cannot
    /// read 1-RTT packets before the handshake is complete, nor send them to an unvalidated address.
    /// Until then a half-open handshake costs neither their memory nor the work.
    stored: Option<Box<StoredKeys>>,
    /// Time at which the keys were last reduced to secrets.
    stored_at: Option<Time>,
    /// Number of times that the keys were needed again soon, up to [`MAX_TOO_SOON`].
    too_soon: u8,
    /// Time at which the previous receive key is erased.
    pub(super) drop_previous_at: Option<Time>,
    /// Time at which the peer last began an update.
    peer_began_at: Option<Time>,
    /// Number of updates that either end began.
    pub(super) updates: u64,
}

/// The probe timeouts of a path (RFC 9002 §6.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProbeTimeouts {
    /// With the peer's `max_ack_delay`.
    pub(crate) full: Duration,
    pub(crate) without_delay: Duration,
}

/// A key update of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PeerUpdate {
    /// True if the peer began the update; false if it followed ours.
    pub(crate) is_new: bool,
    /// Frames without progress as which the update counts.
    pub(crate) cost: u32,
}

/// The reason for which a key update cannot start now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyUpdateBlocked {
    /// The handshake is not confirmed (§6.1).
    NotConfirmed,
    /// The peer has not acknowledged a packet of the current phase (§6.1).
    PreviousUnacknowledged,
    /// Either end has updated its keys within the last three probe timeouts (§6.5). Peers may end a
    /// connection whose keys change faster.
    TooSoon,
}

impl fmt::Display for KeyUpdateBlocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotConfirmed => "keys can be updated only after the handshake is confirmed",
            Self::PreviousUnacknowledged => {
                "the peer has not acknowledged a packet of the current key phase yet"
            }
            Self::TooSoon => "keys were updated within the last three probe timeouts",
        })
    }
}

impl std::error::Error for KeyUpdateBlocked {}

impl OneRtt {
    /// Stores the secrets that TLS derived. An update is due after `update_after` packets.
    pub(super) fn install(&mut self, pair: SecretPair, side: Side, update_after: u64) {
        self.stored = Some(Box::new(StoredKeys::new(pair, side, update_after)));
    }

    /// Keeps only the secrets of the keys, from which they are derived when they are needed again. Keys
    /// that were updated stay.
    pub(super) fn store(&mut self, now: Time) {
        if let Some(keys) = self.keys.take() {
            match keys.store() {
                Ok(stored) => {
                    self.stored = Some(Box::new(stored));
                    let soon = self.idle_before_store() * 4;
                    let is_hasty = self.stored_at.is_some_and(|last| now - last < soon);
                    self.too_soon = (self.too_soon + u8::from(is_hasty)).min(MAX_TOO_SOON);
                    self.stored_at = Some(now);
                }
                Err(keys) => self.keys = Some(keys),
            }
        }
    }

    /// Returns the idle time after which keys should be reduced. It grows fourfold each time that they are
    /// needed again soon, so that a peer which sends a little every two seconds does not cause a derivation
    /// each time.
    pub(super) fn idle_before_store(&self) -> Duration {
        IDLE_BEFORE_STORE * 4_u32.pow(self.too_soon.into())
    }

    /// Returns true while keys exist that [`OneRtt::store`] would reduce.
    #[inline]
    pub(super) fn can_store(&self) -> bool {
        self.keys.is_some() && self.updates == 0
    }

    /// Frees the keys and their secrets.
    pub(super) fn free(&mut self) {
        (self.keys, self.stored) = (None, None);
    }

    /// Returns true once TLS has derived the secrets.
    pub(super) fn is_installed(&self) -> bool {
        self.keys.is_some() || self.stored.is_some()
    }

    /// Returns true while the keys are still to be derived.
    #[inline]
    pub(super) fn is_underived(&self) -> bool {
        self.stored.is_some()
    }

    #[cold]
    pub(super) fn derive(&mut self) {
        if let Some(stored) = self.stored.take() {
            self.keys = Some(Box::new(OneRttKeys::from(*stored)));
        }
    }

    /// Returns the phase of our packets.
    pub(super) fn phase(&self) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.key_phase())
    }

    /// Updates the keys.
    ///
    /// Waits for as long as old receive keys are kept: three probe timeouts (§6.5). A peer that counts
    /// hasty updates (limit K96) would end the connection otherwise.
    pub(super) fn update(&mut self, now: Time) -> Result<(), KeyUpdateBlocked> {
        let Some(keys) = &mut self.keys else {
            return Err(KeyUpdateBlocked::NotConfirmed);
        };
        if !keys.is_update_acknowledged() {
            return Err(KeyUpdateBlocked::PreviousUnacknowledged);
        }
        if self.drop_previous_at.is_some_and(|at| at > now) {
            return Err(KeyUpdateBlocked::TooSoon);
        }
        keys.update();
        self.updates += 1;
        Ok(())
    }

    /// Returns true if the keys have sealed enough packets (limit K22), but not while the peer may still
    /// keep its old receive keys and cannot store newer ones (§6.5).
    pub(super) fn is_update_due(&self) -> bool {
        let keys = self.keys.as_ref();
        keys.is_some_and(|keys| keys.should_update()) && self.drop_previous_at.is_none()
    }

    /// Accounts for a packet of the peer with a new key, by which it begins an update or follows ours.
    /// `before` is the phase of our packets until now.
    ///
    /// A peer waits for an acknowledgement before the next update (§6.1), and should wait for three
    /// probe timeouts (§6.5). One that waits for less than one causes needless work. Its own probe timeout
    /// contains our delay of acknowledgements and not its own, which can be much longer.
    pub(super) fn on_peer_updated(
        &mut self,
        now: Time,
        pto: ProbeTimeouts,
        before: bool,
    ) -> PeerUpdate {
        self.drop_previous_at = Some(now + pto.full.saturating_mul(3));
        if self.phase() == before {
            return PeerUpdate::default();
        }
        self.updates += 1;
        let last = self.peer_began_at.replace(now);
        let is_hasty = last.is_some_and(|last| now - last < pto.without_delay);
        PeerUpdate {
            is_new: true,
            cost: if is_hasty { HASTY_UPDATE } else { 0 },
        }
    }

    /// Erases the previous receive keys, which were kept for reordered packets (§6.5).
    pub(super) fn drop_previous(&mut self, now: Time) {
        if self.drop_previous_at.is_some_and(|at| at <= now) {
            self.drop_previous_at = None;
            if let Some(keys) = &mut self.keys {
                keys.drop_previous();
            }
        }
    }
}
