//! The TLS handshake over CRYPTO streams.

use courser_base::Time;
use courser_crypto::{KeyChange, Space};
use courser_wire::{Frame, PacketKind, packet};

use super::one_rtt::OneRtt;
use super::{Connection, REPEAT};
use crate::encode::encode;

impl Connection {
    /// Passes bytes of a CRYPTO frame to TLS, and fetches its response.
    pub(super) fn on_crypto(&mut self, space: Space, offset: u64, data: &[u8]) {
        let ready = self.numbers_mut(space).on_crypto(offset, data);
        if ready.is_empty() {
            return;
        }
        let was_handshaking = self.tls.is_handshaking();
        // An adversary does not report TLS errors to its peer.
        let _ = self.tls.read(space.crypto_level(), &ready);
        self.write_tls();
        if was_handshaking && !self.tls.is_handshaking() && self.side.is_server() {
            self.frames.push(encode(&Frame::HandshakeDone));
        }
    }

    /// Moves the output of TLS to the CRYPTO streams, and installs its keys.
    pub(super) fn write_tls(&mut self) {
        loop {
            let mut bytes = Vec::new();
            let space = self.crypto_space();
            let change = self.tls.write(&mut bytes);
            let is_idle = bytes.is_empty() && change.is_none();
            self.numbers_mut(space).crypto_out.append(&mut bytes);
            match change {
                Some(KeyChange::Handshake(secrets)) => {
                    self.handshake = Some(secrets.key_pair());
                }
                Some(KeyChange::OneRtt(secrets)) => self.one_rtt = Some(OneRtt::new(secrets)),
                None if is_idle => return,
                None => {}
            }
        }
    }

    /// Returns the packet number space to whose CRYPTO stream TLS writes.
    fn crypto_space(&self) -> Space {
        match (&self.handshake, &self.one_rtt) {
            (None, _) => Space::Initial,
            (Some(_), None) => Space::Handshake,
            (Some(_), Some(_)) => Space::Application,
        }
    }

    /// Repeats the handshake if it is not confirmed after the interval.
    pub(super) fn repeat_handshake(&mut self, now: Time) {
        if self.is_confirmed() || self.is_closed() {
            self.repeat_at = None;
            return;
        }
        let at = *self.repeat_at.get_or_insert(now + REPEAT);
        if at > now {
            return;
        }
        self.repeat_at = Some(now + REPEAT);
        for space in [Space::Initial, Space::Handshake] {
            self.numbers_mut(space).crypto_sent = 0;
        }
    }

    /// Continues the handshake after a Retry packet (RFC 9000 §17.2.5.3).
    pub(super) fn on_retry(&mut self, datagram: &[u8]) {
        let Ok(parts) = packet::retry_parts(datagram) else {
            return;
        };
        if self.is_answered || self.side.is_server() || !self.token.is_empty() {
            return;
        }
        self.token = parts.token.to_vec();
        self.peer_id = parts.source;
        self.initial = courser_crypto::initial::initial_keys(
            courser_wire::VERSION_1,
            &parts.source,
            self.side,
        );
        self.numbers_mut(Space::Initial).crypto_sent = 0;
    }

    /// Returns the packet number space of a packet, or `None` if it cannot be opened now.
    pub(super) fn space_of(&self, kind: PacketKind) -> Option<Space> {
        match kind {
            PacketKind::Initial => Some(Space::Initial),
            PacketKind::Handshake => self.handshake.as_ref().map(|_| Space::Handshake),
            PacketKind::OneRtt if self.is_established() => Some(Space::Application),
            _ => None,
        }
    }
}
