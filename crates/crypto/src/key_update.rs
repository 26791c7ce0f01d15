//! 1-RTT keys across key updates. RFC 9001 §6.

mod by_path;

use std::fmt;

use courser_base::Side;
use courser_wire::PathId;

use self::by_path::ByPath;
use crate::{
    CipherSuite, HeaderKey, OpenError, PacketKey, PacketNonce, Secret, SecretPair,
    header_protection,
};

/// The keys of 1-RTT packets. Key updates replace the packet keys and leave the header keys
/// unchanged.
///
/// Each direction counts generations of keys. The key phase bit is the parity of the generation.
/// The send generation is at most one ahead of the receive generation: between a local update and
/// the moment the peer follows it.
///
/// ```text
///            update()                      peer follows
///  (n, n) ---------------> (n + 1, n) ----------------> (n + 1, n + 1)
///     \                                                        ^
///      `---------------- peer updates: both roll --------------'
/// ```
///
/// The receive side holds the current and the next key. The next key is derived in advance, so that
/// timing does not reveal an update (§6.3). For a while it also holds the previous key, for packets
/// that an update overtook (§6.5).
///
/// All paths of a connection have the same keys and one limit on the packets that they seal. Packet numbers
/// are compared with those of their own path only (RFC 10069 §2.5). An acknowledgement on any path confirms a
/// phase.
#[derive(Debug)]
pub struct OneRttKeys {
    side: Side,
    send: SendKeys,
    receive: ReceiveKeys,
    /// Number of sealed packets after which an update is due.
    update_after: u64,
    /// Number of sealed packets after which a key must not be used at all.
    confidentiality_limit: u64,
}

impl OneRttKeys {
    /// Creates the keys from the secrets that TLS derived.
    pub fn new(secrets: SecretPair, side: Side) -> Self {
        let suite = secrets.local.suite();
        Self {
            side,
            send: SendKeys::new(secrets.local),
            receive: ReceiveKeys::new(secrets.peer),
            update_after: UPDATE_AFTER,
            confidentiality_limit: suite.confidentiality_limit(),
        }
    }

    /// Reduces the keys to the secrets from which they derive, to save memory.
    ///
    /// # Errors
    /// Returns keys that were updated, because their header keys derive from secrets that are no longer
    /// stored, and those of a connection with several paths.
    pub fn store(self: Box<Self>) -> Result<StoredKeys, Box<Self>> {
        if self.send.generation != 0 || self.receive.generation != 0 {
            return Err(self);
        }
        let (Some(&sent), Some(&received)) =
            (self.send.numbers.single(), self.receive.numbers.single())
        else {
            return Err(self);
        };
        let Self { send, receive, .. } = *self;
        Ok(StoredKeys {
            side: self.side,
            secrets: SecretPair {
                local: send.secret,
                peer: receive.secret,
            },
            update_after: self.update_after,
            confidentiality_limit: self.confidentiality_limit,
            sealed: send.sealed,
            next_number: sent.next,
            acknowledged: send.acknowledged,
            lowest: received.lowest,
            highest: received.highest,
        })
    }

    /// Overrides the number of packets after which an update is due, and the number after which a
    /// key must not be used. For tests.
    pub fn set_limits(&mut self, update_after: u64, confidentiality: u64) {
        self.update_after = update_after;
        self.confidentiality_limit = confidentiality;
    }

    /// Returns the side that these keys belong to.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Returns the negotiated suite.
    pub fn suite(&self) -> CipherSuite {
        self.send.key.suite()
    }

    /// Returns the key phase bit for the headers of outgoing packets.
    #[inline]
    pub fn key_phase(&self) -> bool {
        phase(self.send.generation)
    }

    /// Returns the header protection key for outgoing packets.
    #[inline]
    pub fn local_header(&self) -> &HeaderKey {
        &self.send.header
    }

    /// Returns the header protection key for received packets.
    #[inline]
    pub fn peer_header(&self) -> &HeaderKey {
        &self.receive.header
    }

    /// Seals a packet of a path in place, as [`PacketKey::seal_packet`] does, and counts it. The header
    /// must carry the key phase bit of [`OneRttKeys::key_phase`].
    #[inline]
    pub fn seal_packet(
        &mut self,
        path: PathId,
        packet_number: u64,
        packet: &mut [u8],
        header_len: usize,
    ) {
        let sent = self.send.numbers.get_mut(path);
        debug_assert!(
            packet_number >= sent.next,
            "packet numbers are never reused"
        );
        sent.next = packet_number + 1;
        self.send.sealed += 1;
        let nonce = PacketNonce::new(path, packet_number);
        self.send.key.seal_packet(nonce, packet, header_len);
    }

    /// Protects the header of a sealed packet, as [`header_protection::protect`] does.
    #[inline]
    pub fn protect(&self, packet: &mut [u8], packet_number_offset: usize, len: usize) {
        header_protection::protect(&self.send.header, packet, packet_number_offset, len);
    }

    /// Opens a payload in place, with the key that the key phase bit and the packet number select. `path`
    /// is that of the connection ID to which the packet is addressed.
    ///
    /// # Errors
    /// Returns [`OneRttOpenError::Discard`] if the packet is not authentic. Nothing has changed
    /// then, and the caller counts a forgery. Returns [`OneRttOpenError::KeyUpdateError`] if the
    /// packet is authentic but violates the rules of key updates.
    #[inline]
    pub fn open(
        &mut self,
        path: PathId,
        packet_number: u64,
        key_phase: bool,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Opened, OneRttOpenError> {
        if key_phase != phase(self.receive.generation) {
            return self.open_other_phase(path, packet_number, header, payload);
        }
        let nonce = PacketNonce::new(path, packet_number);
        let len = self.receive.current.open(nonce, header, payload)?;
        self.receive.on_opened(path, packet_number)?;
        Ok(Opened {
            len,
            peer_updated: false,
        })
    }

    /// Returns the number of packets sealed with the current key.
    pub fn sealed(&self) -> u64 {
        self.send.sealed
    }

    /// Returns true when enough packets were sealed that the keys should be updated soon.
    #[inline]
    pub fn should_update(&self) -> bool {
        self.send.sealed >= self.update_after
    }

    /// Returns true when the key may seal nothing more than a final CONNECTION_CLOSE. The
    /// connection ends with AEAD_LIMIT_REACHED unless the keys can be updated. RFC 9001 §6.6.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        let reserve = RESERVE.min(self.confidentiality_limit / 16);
        self.send.sealed >= self.confidentiality_limit - reserve
    }

    /// Starts a key update: all further packets are sealed with the next key.
    ///
    /// The caller checks that an update is allowed: the handshake is confirmed and
    /// [`OneRttKeys::is_update_acknowledged`] returns true (RFC 9001 §6.1). Does nothing until the
    /// peer has followed the last local update.
    pub fn update(&mut self) {
        debug_assert!(!self.awaits_peer(), "the peer has followed the last update");
        if !self.awaits_peer() {
            self.send.roll();
        }
    }

    /// Records that the peer acknowledged `packet_number` of a path, or a range that ends with it.
    #[inline]
    pub fn on_packet_acked(&mut self, path: PathId, packet_number: u64) {
        self.send.acknowledged |= self.send.has_current_phase(path, packet_number);
    }

    /// Returns true once the peer has acknowledged a packet of the current key phase and uses that
    /// phase itself. Another update must not start earlier (RFC 9001 §6.1).
    pub fn is_update_acknowledged(&self) -> bool {
        self.send.acknowledged && !self.awaits_peer()
    }

    /// Returns true if an acknowledgment of `packet_number` of a path is a KEY_UPDATE_ERROR: the packet
    /// was sealed with new keys, but the peer still sends with old ones. RFC 9001 §6.2.
    ///
    /// Call this after opening the packet that carries the ACK.
    pub fn acknowledgment_breaks_phase(&self, path: PathId, packet_number: u64) -> bool {
        self.awaits_peer() && self.send.has_current_phase(path, packet_number)
    }

    /// Returns true while the previous receive key is kept.
    pub fn previous_installed(&self) -> bool {
        self.receive.previous.is_some()
    }

    /// Erases the previous receive key. Call this about three probe timeouts after
    /// [`Opened::peer_updated`]. RFC 9001 §6.5.
    pub fn drop_previous(&mut self) {
        self.receive.previous = None;
    }

    fn awaits_peer(&self) -> bool {
        self.send.generation != self.receive.generation
    }

    /// Opens a packet whose key phase differs from that of the current receive key. Either an
    /// update overtook the packet, or the packet starts the next phase.
    #[cold]
    fn open_other_phase(
        &mut self,
        path: PathId,
        packet_number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Opened, OneRttOpenError> {
        let nonce = PacketNonce::new(path, packet_number);
        // A path on which nothing arrived in this phase may still have packets of the previous one.
        let lowest = self
            .receive
            .numbers
            .get(path)
            .map_or(u64::MAX, |it| it.lowest);
        if let Some(previous) = &self.receive.previous
            && packet_number < lowest
        {
            let len = previous.open(nonce, header, payload)?;
            let received = self.receive.numbers.get_mut(path);
            received.previous_highest = received.previous_highest.max(Some(packet_number));
            return Ok(Opened {
                len,
                peer_updated: false,
            });
        }
        // A late packet whose key was dropped fails here too, and takes as long as any other
        // failure (RFC 9001 §6.3).
        let len = self.receive.next.open(nonce, header, payload)?;
        self.on_peer_update(path, packet_number)?;
        Ok(Opened {
            len,
            peer_updated: true,
        })
    }

    /// Follows the peer, after a packet of the next generation proved authentic.
    fn on_peer_update(&mut self, path: PathId, packet_number: u64) -> Result<(), OneRttOpenError> {
        let highest = self.receive.numbers.get(path).and_then(|it| it.highest);
        if highest > Some(packet_number) {
            return Err(OneRttOpenError::KeyUpdateError); // RFC 9001 §6.4
        }
        if !self.awaits_peer() {
            // The peer may update again only after we acknowledged a packet of this phase. That is
            // impossible as long as nothing was sealed in it (RFC 9001 §6.2).
            if self.send.generation > 0 && self.send.sealed == 0 {
                return Err(OneRttOpenError::KeyUpdateError);
            }
            self.send.roll();
        }
        self.receive.roll(path, packet_number);
        Ok(())
    }
}

/// The result of opening a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened {
    /// Length of the plaintext at the start of the payload.
    pub len: usize,
    /// True for the first packet under a new receive key. Outgoing packets have switched to the
    /// same phase. The previous receive key stays until [`OneRttKeys::drop_previous`].
    pub peer_updated: bool,
}

/// The reason why a 1-RTT packet was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OneRttOpenError {
    /// The packet is not authentic. Drop it and count it.
    Discard,
    /// The peer violates the rules of key updates. The connection ends with KEY_UPDATE_ERROR.
    KeyUpdateError,
}

impl From<OpenError> for OneRttOpenError {
    fn from(_: OpenError) -> Self {
        Self::Discard
    }
}

impl fmt::Display for OneRttOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discard => "packet failed authentication",
            Self::KeyUpdateError => "the peer violated the rules of key updates",
        })
    }
}

impl std::error::Error for OneRttOpenError {}

/// The keys of a connection that is idle, or not connected yet, as secrets and counters: a tenth of
/// the memory. Deriving the keys from them costs about as much as sealing a dozen packets.
#[derive(Debug)]
pub struct StoredKeys {
    side: Side,
    secrets: SecretPair,
    update_after: u64,
    confidentiality_limit: u64,
    sealed: u64,
    next_number: u64,
    acknowledged: bool,
    lowest: u64,
    highest: Option<u64>,
}

impl StoredKeys {
    /// Stores the secrets that TLS derived. An update is due after `update_after` packets.
    pub fn new(secrets: SecretPair, side: Side, update_after: u64) -> Self {
        Self {
            side,
            confidentiality_limit: secrets.local.suite().confidentiality_limit(),
            secrets,
            update_after,
            sealed: 0,
            next_number: 0,
            acknowledged: false,
            lowest: u64::MAX,
            highest: None,
        }
    }
}

impl From<StoredKeys> for OneRttKeys {
    fn from(stored: StoredKeys) -> Self {
        let mut keys = Self::new(stored.secrets, stored.side);
        keys.set_limits(stored.update_after, stored.confidentiality_limit);
        keys.send.sealed = stored.sealed;
        keys.send.acknowledged = stored.acknowledged;
        keys.send.numbers.get_mut(PathId::ZERO).next = stored.next_number;
        let received = keys.receive.numbers.get_mut(PathId::ZERO);
        (received.lowest, received.highest) = (stored.lowest, stored.highest);
        keys
    }
}

#[derive(Debug)]
struct SendKeys {
    /// The secret from which `key` was derived.
    secret: Secret,
    key: PacketKey,
    header: HeaderKey,
    generation: u64,
    /// Number of packets sealed with `key`.
    sealed: u64,
    numbers: ByPath<SentNumbers>,
    /// True once a packet sealed with `key` was acknowledged, on any path.
    acknowledged: bool,
}

/// The packet numbers that were sealed for one path.
#[derive(Clone, Copy, Debug, Default)]
struct SentNumbers {
    /// The lowest packet number that the current key may seal.
    first: u64,
    /// One above the last packet number sealed.
    next: u64,
}

impl SendKeys {
    fn new(secret: Secret) -> Self {
        Self {
            key: secret.packet_key(),
            header: secret.header_key(),
            secret,
            generation: 0,
            sealed: 0,
            numbers: ByPath::default(),
            acknowledged: false,
        }
    }

    /// Replaces the key by the next one.
    fn roll(&mut self) {
        self.secret = self.secret.next();
        self.key = self.secret.packet_key();
        self.generation += 1;
        self.sealed = 0;
        for sent in self.numbers.values_mut() {
            sent.first = sent.next;
        }
        self.acknowledged = false;
    }

    /// Returns true if a packet of a path was sealed with `key`, provided that it was sent.
    #[inline]
    fn has_current_phase(&self, path: PathId, packet_number: u64) -> bool {
        let first = self.numbers.get(path).map_or(0, |sent| sent.first);
        packet_number >= first
    }
}

#[derive(Debug)]
struct ReceiveKeys {
    /// The secret from which `current` was derived.
    secret: Secret,
    /// The key before the last update.
    previous: Option<PacketKey>,
    current: PacketKey,
    next: PacketKey,
    header: HeaderKey,
    generation: u64,
    numbers: ByPath<ReceivedNumbers>,
}

/// The packet numbers that were opened for one path.
#[derive(Clone, Copy, Debug)]
struct ReceivedNumbers {
    /// The lowest packet number opened with the current key, or the maximum if there is none.
    lowest: u64,
    /// The highest packet number opened with the current key.
    highest: Option<u64>,
    /// The highest packet number opened with the previous key.
    previous_highest: Option<u64>,
}

impl Default for ReceivedNumbers {
    fn default() -> Self {
        Self {
            lowest: u64::MAX,
            highest: None,
            previous_highest: None,
        }
    }
}

impl ReceiveKeys {
    fn new(secret: Secret) -> Self {
        Self {
            previous: None,
            current: secret.packet_key(),
            next: secret.next().packet_key(),
            header: secret.header_key(),
            secret,
            generation: 0,
            numbers: ByPath::default(),
        }
    }

    /// Records a packet that `current` opened. Fails if an older key opened a higher packet number of the
    /// path (RFC 9001 §6.4).
    #[inline]
    fn on_opened(&mut self, path: PathId, packet_number: u64) -> Result<(), OneRttOpenError> {
        let received = self.numbers.get_mut(path);
        received.lowest = received.lowest.min(packet_number);
        received.highest = received.highest.max(Some(packet_number));
        if self.previous.is_some() && received.previous_highest > Some(packet_number) {
            return Err(OneRttOpenError::KeyUpdateError);
        }
        Ok(())
    }

    /// Makes `next` the current key. `packet_number` of a path is the first packet that it opened.
    fn roll(&mut self, path: PathId, packet_number: u64) {
        self.secret = self.secret.next();
        let next = self.secret.next().packet_key();
        let current = std::mem::replace(&mut self.next, next);
        self.previous = Some(std::mem::replace(&mut self.current, current));
        self.generation += 1;
        for received in self.numbers.values_mut() {
            *received = ReceivedNumbers {
                previous_highest: received.highest,
                ..ReceivedNumbers::default()
            };
        }
        let received = self.numbers.get_mut(path);
        (received.lowest, received.highest) = (packet_number, Some(packet_number));
    }
}

#[inline]
fn phase(generation: u64) -> bool {
    generation & 1 == 1
}

/// An eighth of the AES-GCM limit, early enough to retry a refused update many times.
const UPDATE_AFTER: u64 = 1 << 20;

/// Number of packets reserved below the confidentiality limit for closing the connection.
const RESERVE: u64 = 10_000;

#[cfg(test)]
mod tests;
