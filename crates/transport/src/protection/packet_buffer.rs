//! Buffers packets that arrived before their keys. RFC 9001 §4.1.4.

use courser_base::{Ecn, Time};
use courser_crypto::EncryptionLevel;

use crate::path::Place;

/// Maximum number of buffered packets (limit K08).
pub const MAX_PACKETS: usize = 10;
/// Maximum length of all buffered packets together in bytes (limit K08).
pub const MAX_BYTES: usize = 16 * 1024;

/// A packet that waits for its keys.
#[derive(Debug)]
pub struct BufferedPacket {
    /// The level whose keys it waits for.
    pub level: EncryptionLevel,
    /// The bytes of the packet without the rest of its datagram.
    pub bytes: Vec<u8>,
    /// The addresses and the socket of its datagram.
    pub place: Place,
    /// The ECN mark of its datagram.
    pub ecn: Ecn,
    /// Time of arrival. The ACK Delay in its acknowledgement includes the time in the buffer.
    pub arrived: Time,
}

/// The packets that wait for their keys. Packets above a limit are dropped.
#[derive(Debug, Default)]
pub struct PacketBuffer {
    packets: Vec<BufferedPacket>,
    bytes: usize,
}

impl PacketBuffer {
    /// Adds a packet. Returns false if it exceeds a limit.
    pub fn push(&mut self, packet: BufferedPacket) -> bool {
        if self.packets.len() >= MAX_PACKETS || self.bytes + packet.bytes.len() > MAX_BYTES {
            return false;
        }
        self.bytes += packet.bytes.len();
        self.packets.push(packet);
        true
    }

    /// Removes and returns the packets of a level, oldest first.
    pub fn take(&mut self, level: EncryptionLevel) -> Vec<BufferedPacket> {
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

    /// Drops all packets, for connections that get no more keys.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn early(level: EncryptionLevel, len: usize) -> BufferedPacket {
        let place = courser_base::FourTuple::to(SocketAddr::from(([127, 0, 0, 1], 1))).into();
        BufferedPacket {
            level,
            bytes: vec![0; len],
            place,
            ecn: Ecn::NotEct,
            arrived: Time::ZERO,
        }
    }

    #[test]
    fn eleventh_packet_is_dropped() {
        let mut buffer = PacketBuffer::default();
        assert!((0..MAX_PACKETS).all(|_| buffer.push(early(EncryptionLevel::OneRtt, 100))));
        assert!(!buffer.push(early(EncryptionLevel::OneRtt, 100)));
    }

    #[test]
    fn packet_above_the_limit_of_bytes_is_dropped() {
        let mut buffer = PacketBuffer::default();
        assert!(buffer.push(early(EncryptionLevel::Handshake, MAX_BYTES)));
        assert!(!buffer.push(early(EncryptionLevel::Handshake, 1)));
        assert_eq!(buffer.take(EncryptionLevel::Handshake).len(), 1);
        assert!(buffer.push(early(EncryptionLevel::Handshake, 1)));
    }

    #[test]
    fn packets_of_other_levels_stay() {
        let mut buffer = PacketBuffer::default();
        buffer.push(early(EncryptionLevel::Handshake, 1));
        buffer.push(early(EncryptionLevel::OneRtt, 2));
        buffer.push(early(EncryptionLevel::ZeroRtt, 3));
        for level in [
            EncryptionLevel::Handshake,
            EncryptionLevel::ZeroRtt,
            EncryptionLevel::OneRtt,
        ] {
            assert_eq!(buffer.take(level).len(), 1, "{level:?}");
        }
    }
}
