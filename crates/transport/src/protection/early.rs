//! A small store for packets that came before their keys. RFC 9001 §4.1.4.

use courser_base::{Ecn, Time};
use courser_crypto::EncryptionLevel;

use crate::path::Place;

/// Packets kept (limit K08).
pub const MAX_PACKETS: usize = 10;
/// Bytes kept (limit K08).
pub const MAX_BYTES: usize = 16 * 1024;

/// A packet that could not be opened yet.
#[derive(Debug)]
pub struct Early {
    /// The level whose keys it waits for.
    pub level: EncryptionLevel,
    /// The packet alone, cut out of its datagram.
    pub bytes: Vec<u8>,
    /// The addresses that it came from and to.
    pub place: Place,
    /// The mark it came with.
    pub ecn: Ecn,
    /// Time of arrival. The delay that its acknowledgement reports includes the wait.
    pub arrived: Time,
}

/// Packets that arrived before their keys. Packets that do not fit are dropped.
#[derive(Debug, Default)]
pub struct Undecryptable {
    packets: Vec<Early>,
    bytes: usize,
}

impl Undecryptable {
    /// Keeps a packet; false when there is no room.
    pub fn keep(&mut self, packet: Early) -> bool {
        if self.packets.len() >= MAX_PACKETS || self.bytes + packet.bytes.len() > MAX_BYTES {
            return false;
        }
        self.bytes += packet.bytes.len();
        self.packets.push(packet);
        true
    }

    /// Takes the packets of a level whose keys have arrived, oldest first.
    pub fn take(&mut self, level: EncryptionLevel) -> Vec<Early> {
        if self.packets.is_empty() {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.packets);
        let (taken, kept): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|packet| packet.level == level);
        self.bytes = kept.iter().map(|packet| packet.bytes.len()).sum();
        self.packets = kept;
        taken
    }

    /// Drops everything: no more keys will come.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn early(level: EncryptionLevel, len: usize) -> Early {
        let place = courser_base::FourTuple::to(SocketAddr::from(([127, 0, 0, 1], 1))).into();
        Early {
            level,
            bytes: vec![0; len],
            place,
            ecn: Ecn::NotEct,
            arrived: Time::ZERO,
        }
    }

    #[test]
    fn eleventh_packet_is_dropped() {
        let mut room = Undecryptable::default();
        assert!((0..MAX_PACKETS).all(|_| room.keep(early(EncryptionLevel::OneRtt, 100))));
        assert!(!room.keep(early(EncryptionLevel::OneRtt, 100)));
    }

    #[test]
    fn bytes_past_the_limit_are_dropped() {
        let mut room = Undecryptable::default();
        assert!(room.keep(early(EncryptionLevel::Handshake, MAX_BYTES)));
        assert!(!room.keep(early(EncryptionLevel::Handshake, 1)));
        assert_eq!(room.take(EncryptionLevel::Handshake).len(), 1);
        assert!(room.keep(early(EncryptionLevel::Handshake, 1)));
    }

    #[test]
    fn other_levels_stay() {
        let mut room = Undecryptable::default();
        room.keep(early(EncryptionLevel::Handshake, 1));
        room.keep(early(EncryptionLevel::OneRtt, 2));
        room.keep(early(EncryptionLevel::ZeroRtt, 3));
        for level in [
            EncryptionLevel::Handshake,
            EncryptionLevel::ZeroRtt,
            EncryptionLevel::OneRtt,
        ] {
            assert_eq!(room.take(level).len(), 1, "{level:?}");
        }
    }
}
