//! Packet protection: the keys of all levels, and the packets that wait for them. RFC 9001.
//!
//! [`PacketProtection`] opens and seals packets. It is independent of frames and paths, and uses time
//! only for the discarding of keys.

mod one_rtt;
mod packet_buffer;
mod zero_rtt;

use std::ops::Range;
use std::time::Duration;

use courser_base::{Side, Time};
use courser_crypto::{
    EncryptionLevel, ForgeryCounter, KeyPair, OneRttOpenError, Secret, SecretPair,
    header_protection,
};
use courser_wire::packet::{Packet, PacketKind, reserved_bits_are_zero, short::key_phase_bit};
use courser_wire::{PathId, TransportErrorCode, packet_number};

#[cfg(test)]
pub(crate) use self::one_rtt::HASTY_UPDATE;
pub use self::one_rtt::KeyUpdateBlocked;
pub(crate) use self::one_rtt::{PeerUpdate, ProbeTimeouts};
pub(crate) use self::packet_buffer::BufferedPacket;

use self::one_rtt::OneRtt;
use self::packet_buffer::PacketBuffer;
use self::zero_rtt::ZeroRtt;
use crate::error::TransportError;
use crate::space::SpaceId;

/// The keys of a connection.
#[derive(Debug)]
pub(crate) struct PacketProtection {
    side: Side,
    /// Packets after which 1-RTT keys are updated.
    update_after: u64,
    initial: Option<Box<KeyPair>>,
    /// Initial keys of another version, which open packets only (RFC 9369 §4.1). On a client it
    /// may become the version of the connection, on a server it was that of the client's first
    /// flight.
    other_initial: Option<Box<(u32, KeyPair)>>,
    handshake: Option<Box<KeyPair>>,
    zero_rtt: Option<Box<ZeroRtt>>,
    one_rtt: OneRtt,
    /// Packets that did not authenticate, over the whole connection (§6.6).
    forgeries: ForgeryCounter,
    /// Packets that wait for their keys.
    buffered: PacketBuffer,
}

/// A packet whose protection was removed.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) number: u64,
    /// The frames within the packet.
    pub(crate) payload: Range<usize>,
    /// The update of 1-RTT keys that the packet indicates.
    pub(crate) update: Option<PeerUpdate>,
}

/// A payload that is authentic.
#[derive(Clone, Copy, Debug)]
struct OpenedPayload {
    len: usize,
    /// True if the packet is the first of a new key phase of the peer.
    peer_updated: bool,
}

impl OpenedPayload {
    /// Creates the payload of a packet whose keys are never updated.
    fn without_update(len: usize) -> Self {
        Self {
            len,
            peer_updated: false,
        }
    }
}

/// A packet number as its packet carries it. RFC 9000 §17.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TruncatedNumber {
    /// The length in bytes.
    pub(crate) len: usize,
    pub(crate) value: u64,
}

/// The reason for which the packet number of a quoted packet stays unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum QuoteFailure {
    /// There are no 1-RTT keys.
    NoKeys,
    /// The quote ends before the sample that header protection needs.
    TooShort,
}

/// The reason for which a packet was not opened.
#[derive(Debug)]
pub(crate) enum OpenFailure {
    /// There are no keys for its level or version.
    NoKeys,
    /// It is not authentic and is dropped.
    NotAuthentic,
    /// It is not authentic, and exceeds the integrity limit (§6.6).
    TooManyForgeries,
    /// It is authentic and breaks a rule.
    Violation(TransportError),
}

/// The number of a packet that is to be sealed, and its position in the packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sealing {
    /// The path of a 1-RTT packet.
    pub(crate) path: PathId,
    pub(crate) number: u64,
    /// Offset of the packet number from the start of the packet.
    pub(crate) number_offset: usize,
    /// Length of the packet number in bytes.
    pub(crate) number_len: usize,
}

impl PacketProtection {
    /// Creates the state of a connection without keys. 1-RTT keys are updated after `update_after`
    /// packets.
    pub(crate) fn new(side: Side, update_after: u64) -> Self {
        Self {
            side,
            update_after,
            initial: None,
            other_initial: None,
            handshake: None,
            zero_rtt: None,
            one_rtt: OneRtt::default(),
            forgeries: ForgeryCounter::default(),
            buffered: PacketBuffer::default(),
        }
    }

    /// Installs the keys of Initial or Handshake packets.
    pub(crate) fn install(&mut self, id: SpaceId, keys: KeyPair) {
        match id {
            SpaceId::Initial => self.initial = Some(Box::new(keys)),
            SpaceId::Handshake => self.handshake = Some(Box::new(keys)),
            SpaceId::Application => {}
        }
    }

    /// Installs the keys of 0-RTT packets.
    pub(crate) fn install_zero_rtt(&mut self, secret: &Secret) {
        self.zero_rtt = Some(Box::new(ZeroRtt::new(secret)));
    }

    /// Discards the keys of 0-RTT packets, and the packets that wait for them (§4.9.3). Returns true
    /// if there were keys.
    pub(crate) fn discard_zero_rtt(&mut self) -> bool {
        drop(self.buffered.take(EncryptionLevel::ZeroRtt));
        self.zero_rtt.take().is_some()
    }

    /// Returns true while this end may open 0-RTT packets, which only servers do (§5.6).
    pub(crate) fn opens_zero_rtt(&self) -> bool {
        self.side.is_server() && self.zero_rtt.is_some()
    }

    /// Returns true while this end sends 0-RTT packets instead of 1-RTT packets.
    #[inline]
    pub(crate) fn seals_zero_rtt(&self) -> bool {
        self.side.is_client() && self.zero_rtt.is_some()
    }

    /// Stores keys that open Initials of another version, unless they exist already.
    pub(crate) fn prepare_initial(&mut self, version: u32, keys: impl FnOnce() -> KeyPair) {
        if !self.is_other_initial(version) {
            self.other_initial = Some(Box::new((version, keys())));
        }
    }

    /// Changes the version of Initials to the one for which keys were prepared. Packets of the previous
    /// version are no longer opened.
    pub(crate) fn adopt_initial(&mut self) {
        if let Some(other) = self.other_initial.take() {
            self.initial = Some(Box::new(other.1));
        }
    }

    /// Changes the version of Initials. Packets of version `old` are still opened.
    pub(crate) fn move_initial(&mut self, old: u32, keys: KeyPair) {
        if let Some(initial) = self.initial.replace(Box::new(keys)) {
            self.other_initial = Some(Box::new((old, *initial)));
        }
    }

    fn is_other_initial(&self, version: u32) -> bool {
        let other = self.other_initial.as_ref();
        other.is_some_and(|other| other.0 == version)
    }

    /// Installs the secrets of 1-RTT packets, whose keys are derived at their first use. A client
    /// sends no 0-RTT packets from now on (§5.6).
    pub(crate) fn install_one_rtt(&mut self, secrets: SecretPair) {
        if self.side.is_client() {
            self.zero_rtt = None;
        }
        self.forgeries.on_suite(secrets.local.suite());
        self.one_rtt.install(secrets, self.side, self.update_after);
    }

    /// Discards the keys of a space and the packets that wait for them (§4.9).
    pub(crate) fn discard(&mut self, id: SpaceId) {
        match id {
            SpaceId::Initial => (self.initial, self.other_initial) = (None, None),
            SpaceId::Handshake => self.handshake = None,
            SpaceId::Application => {}
        }
        drop(self.buffered.take(id.level()));
    }

    /// Drops the packets that wait for keys, because the connection is over.
    pub(crate) fn on_close(&mut self) {
        self.buffered.clear();
    }

    /// Frees all keys. The number of updates stays.
    pub(crate) fn free(&mut self) {
        (self.initial, self.handshake) = (None, None);
        self.zero_rtt = None;
        self.other_initial = None;
        self.one_rtt.free();
        self.buffered.clear();
    }

    /// Keeps only the secrets of the 1-RTT keys until they are needed.
    pub(crate) fn store(&mut self, now: Time) {
        self.one_rtt.store(now);
    }

    /// Returns true while 1-RTT keys exist that [`PacketProtection::store`] would reduce.
    #[inline]
    pub(crate) fn can_store(&self) -> bool {
        self.one_rtt.can_store()
    }

    /// Returns the idle time after which [`PacketProtection::store`] should reduce the keys.
    pub(crate) fn idle_before_store(&self) -> Duration {
        self.one_rtt.idle_before_store()
    }

    /// Returns true once a space has keys, or the secrets that they are derived from.
    pub(crate) fn has_keys(&self, id: SpaceId) -> bool {
        match id {
            SpaceId::Application => self.one_rtt.is_installed(),
            id => self.long_keys(id).is_some(),
        }
    }

    /// Returns true while 1-RTT keys are still to be derived.
    #[inline]
    pub(crate) fn is_underived(&self) -> bool {
        self.one_rtt.is_underived()
    }

    /// Derives the 1-RTT keys if they exist as secrets only.
    #[cold]
    pub(crate) fn derive(&mut self) {
        self.one_rtt.derive();
    }

    /// Buffers a packet that arrived before its keys. Returns false if it exceeds a limit (limit K08).
    pub(crate) fn buffer_packet(&mut self, packet: BufferedPacket) -> bool {
        self.buffered.push(packet)
    }

    /// Removes and returns the packets that wait for the keys of a level, oldest first.
    pub(crate) fn take_buffered(&mut self, level: EncryptionLevel) -> Vec<BufferedPacket> {
        self.buffered.take(level)
    }

    /// Removes the protection of a packet at the start of `bytes`, which end where the packet ends.
    /// `expected` is the packet number to expect in its space, and `path` the path of a 1-RTT packet.
    pub(crate) fn open(
        &mut self,
        now: Time,
        pto: impl Fn() -> ProbeTimeouts,
        (path, expected): (PathId, u64),
        packet: &Packet,
        bytes: &mut [u8],
    ) -> Result<Opened, OpenFailure> {
        let id = SpaceId::of(packet.kind).ok_or(OpenFailure::NoKeys)?;
        if id == SpaceId::Application && self.one_rtt.is_underived() {
            self.one_rtt.derive();
        }
        let offset = packet.packet_number_offset;
        let header_key = match id {
            _ if packet.kind == PacketKind::ZeroRtt => {
                self.zero_rtt.as_ref().map(|keys| keys.header())
            }
            SpaceId::Application => self.one_rtt.keys.as_ref().map(|keys| keys.peer_header()),
            id => self.keys_of(id, packet).map(|keys| &keys.peer.header),
        };
        let header_key = header_key.ok_or(OpenFailure::NoKeys)?;
        let (len, truncated) = header_protection::unprotect(header_key, bytes, offset)
            .ok_or(OpenFailure::NotAuthentic)?;
        let number = packet_number::expand(truncated, len, expected);
        let phase_before = self.one_rtt.phase();
        let payload_start = offset + len;
        let (header, payload) = bytes.split_at_mut(payload_start);
        let opened = match packet.kind {
            PacketKind::ZeroRtt => self.open_early_payload(number, header, payload)?,
            _ => self.open_payload(packet, (path, number), header, payload)?,
        };
        let Some(opened) = opened else {
            return Err(match self.forgeries.on_failure() {
                true => OpenFailure::TooManyForgeries,
                false => OpenFailure::NotAuthentic,
            });
        };
        // Only an authentic packet can break this rule (RFC 9000 §17.2, §17.3.1).
        if !reserved_bits_are_zero(header[0]) {
            let reason = "reserved header bits are not zero";
            let error = TransportError::protocol_violation(reason);
            return Err(OpenFailure::Violation(error));
        }
        if let Some(early) = &mut self.zero_rtt {
            early
                .on_opened(now, || pto().full, packet.kind, number)
                .map_err(OpenFailure::Violation)?;
        }
        let update = opened
            .peer_updated
            .then(|| self.one_rtt.on_peer_updated(now, pto(), phase_before));
        Ok(Opened {
            number,
            payload: payload_start..payload_start + opened.len,
            update,
        })
    }

    /// Opens the payload of a 0-RTT packet; `None` when it is not authentic.
    #[cold]
    fn open_early_payload(
        &self,
        number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Option<OpenedPayload>, OpenFailure> {
        let keys = self.zero_rtt.as_ref().ok_or(OpenFailure::NoKeys)?;
        let opened = keys.open(number, header, payload);
        Ok(opened.map(OpenedPayload::without_update))
    }

    /// Opens a payload; `None` when it is not authentic.
    #[inline]
    fn open_payload(
        &mut self,
        packet: &Packet,
        (path, number): (PathId, u64),
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Option<OpenedPayload>, OpenFailure> {
        let id = SpaceId::of(packet.kind).ok_or(OpenFailure::NoKeys)?;
        if id != SpaceId::Application {
            let keys = self.keys_of(id, packet).ok_or(OpenFailure::NoKeys)?;
            let opened = keys.peer.packet.open(number, header, payload);
            return Ok(opened.ok().map(OpenedPayload::without_update));
        }
        let keys = self.one_rtt.keys.as_mut().ok_or(OpenFailure::NoKeys)?;
        match keys.open(path, number, key_phase_bit(header[0]), header, payload) {
            Ok(opened) => Ok(Some(OpenedPayload {
                len: opened.len,
                peer_updated: opened.peer_updated,
            })),
            Err(OneRttOpenError::Discard) => Ok(None),
            Err(OneRttOpenError::KeyUpdateError) => {
                let code = TransportErrorCode::KEY_UPDATE_ERROR;
                let error = TransportError::new(code, "key update that RFC 9001 does not permit");
                Err(OpenFailure::Violation(error))
            }
        }
    }

    /// Seals the packet that fills `bytes` and protects its header. Does nothing without keys.
    #[inline]
    pub(crate) fn seal(&mut self, id: SpaceId, packet: Sealing, bytes: &mut [u8]) {
        let Sealing {
            path,
            number,
            number_offset,
            number_len,
        } = packet;
        let header_len = number_offset + number_len;
        if id == SpaceId::Application {
            if self.seals_zero_rtt() {
                if let Some(keys) = &self.zero_rtt {
                    keys.seal(number, bytes, header_len);
                    header_protection::protect(keys.header(), bytes, number_offset, number_len);
                }
            } else if let Some(keys) = &mut self.one_rtt.keys {
                keys.seal_packet(path, number, bytes, header_len);
                keys.protect(bytes, number_offset, number_len);
            }
        } else if let Some(keys) = self.long_keys(id) {
            keys.local.packet.seal_packet(number, bytes, header_len);
            header_protection::protect(&keys.local.header, bytes, number_offset, number_len);
        }
    }

    /// Returns the key phase of our 1-RTT packets; `None` before their keys are derived.
    #[inline]
    pub(crate) fn key_phase(&self) -> Option<bool> {
        self.one_rtt.keys.as_ref().map(|keys| keys.key_phase())
    }

    /// Removes the header protection of a 1-RTT packet of ours that a router quotes, and returns its
    /// packet number.
    pub(crate) fn unprotect_quote(
        &self,
        header: &mut [u8],
        number_offset: usize,
    ) -> Result<TruncatedNumber, QuoteFailure> {
        let keys = self.one_rtt.keys.as_ref().ok_or(QuoteFailure::NoKeys)?;
        let (len, value) = header_protection::unprotect(keys.local_header(), header, number_offset)
            .ok_or(QuoteFailure::TooShort)?;
        Ok(TruncatedNumber { len, value })
    }

    /// Updates the 1-RTT keys.
    pub(crate) fn update(&mut self, now: Time) -> Result<(), KeyUpdateBlocked> {
        self.one_rtt.derive();
        self.one_rtt.update(now)
    }

    /// Returns true if the 1-RTT keys should be updated.
    pub(crate) fn is_update_due(&self) -> bool {
        self.one_rtt.is_update_due()
    }

    /// Returns true if the 1-RTT keys have sealed as many packets as they may (§6.6).
    pub(crate) fn is_exhausted(&self) -> bool {
        let keys = self.one_rtt.keys.as_ref();
        keys.is_some_and(|keys| keys.is_exhausted())
    }

    /// Checks that a peer which acknowledges a packet of the new key phase has followed it (§6.2).
    ///
    /// # Errors
    ///
    /// KEY_UPDATE_ERROR if it has not.
    pub(crate) fn check_acknowledged(
        &self,
        path: PathId,
        largest: u64,
    ) -> Result<(), TransportError> {
        let keys = self.one_rtt.keys.as_ref();
        if keys.is_some_and(|keys| keys.acknowledgment_breaks_phase(path, largest)) {
            let code = TransportErrorCode::KEY_UPDATE_ERROR;
            let reason = "acknowledged the new key phase in packets of the old one";
            return Err(TransportError::new(code, reason));
        }
        Ok(())
    }

    /// Processes the acknowledgement of a 1-RTT packet. If it has the current phase, the next update may
    /// begin.
    pub(crate) fn on_packet_acked(&mut self, path: PathId, number: u64) {
        if let Some(keys) = &mut self.one_rtt.keys {
            keys.on_packet_acked(path, number);
        }
    }

    /// Returns the time at which the previous receive key or the key of 0-RTT packets is erased.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let early = self.zero_rtt.as_ref().and_then(|keys| keys.drop_at());
        Time::earliest(self.one_rtt.drop_previous_at, early)
    }

    /// Erases the previous receive key if it is time. Returns true if the key of 0-RTT packets is to
    /// be discarded.
    pub(crate) fn on_timeout(&mut self, now: Time) -> bool {
        self.one_rtt.drop_previous(now);
        let early = self.zero_rtt.as_ref().and_then(|keys| keys.drop_at());
        early.is_some_and(|at| at <= now)
    }

    /// Returns the number of key updates that either end began.
    pub(crate) fn updates(&self) -> u64 {
        self.one_rtt.updates
    }

    /// Returns the keys for a received packet with a long header.
    fn keys_of(&self, id: SpaceId, packet: &Packet) -> Option<&KeyPair> {
        match &self.other_initial {
            Some(other) if id == SpaceId::Initial && other.0 == packet.version => Some(&other.1),
            _ => self.long_keys(id),
        }
    }

    fn long_keys(&self, id: SpaceId) -> Option<&KeyPair> {
        match id {
            SpaceId::Initial => self.initial.as_deref(),
            SpaceId::Handshake => self.handshake.as_deref(),
            SpaceId::Application => None,
        }
    }
}

#[cfg(test)]
impl PacketProtection {
    /// Returns the number of packets that failed authentication.
    pub(crate) fn failures(&self) -> u64 {
        self.forgeries.failures()
    }

    /// Lowers the number of forged packets that are tolerated.
    pub(crate) fn limit_forgeries(&mut self, limit: u64) {
        self.forgeries = ForgeryCounter::with_limit(limit);
    }

    pub(crate) fn one_rtt_keys(&mut self) -> Option<&mut courser_crypto::OneRttKeys> {
        self.one_rtt.keys.as_deref_mut()
    }

    /// Returns the key that protects headers of packets of a space.
    pub(crate) fn local_header(&self, id: SpaceId) -> Option<&courser_crypto::HeaderKey> {
        match id {
            SpaceId::Application => self.one_rtt.keys.as_ref().map(|keys| keys.local_header()),
            id => self.long_keys(id).map(|keys| &keys.local.header),
        }
    }

    /// Seals a packet without protecting its header.
    pub(crate) fn seal_only(&mut self, id: SpaceId, number: u64, bytes: &mut [u8], header: usize) {
        match (id, &mut self.one_rtt.keys) {
            (SpaceId::Application, Some(keys)) => {
                keys.seal_packet(PathId::ZERO, number, bytes, header);
            }
            (SpaceId::Application, None) => panic!("1-RTT keys"),
            _ => {
                let keys = self.long_keys(id).expect("keys of the space");
                keys.local.packet.seal_packet(number, bytes, header);
            }
        }
    }
}

#[cfg(test)]
mod tests;
