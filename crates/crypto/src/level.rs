//! Encryption levels and packet number spaces. RFC 9001 §2.1, RFC 9000 §12.3.

use courser_wire::PacketKind;

/// An encryption level: the keys that protect a packet, and the CRYPTO stream that carries a TLS
/// message.
///
/// The variants are in the order in which the levels become available to TLS.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EncryptionLevel {
    /// Initial keys, which anyone on the path can derive.
    Initial,
    /// Keys for early data of a resumed session.
    ZeroRtt,
    /// Handshake keys, which protect the rest of the TLS handshake.
    Handshake,
    /// Keys that the completed handshake establishes.
    OneRtt,
}

impl EncryptionLevel {
    /// Returns the packet number space of packets at this level.
    pub const fn space(self) -> Space {
        match self {
            Self::Initial => Space::Initial,
            Self::Handshake => Space::Handshake,
            Self::ZeroRtt | Self::OneRtt => Space::Application,
        }
    }

    /// Returns the level that protects packets of this kind, or `None` for unprotected packets.
    pub const fn of_packet(kind: PacketKind) -> Option<Self> {
        match kind {
            PacketKind::Initial => Some(Self::Initial),
            PacketKind::ZeroRtt => Some(Self::ZeroRtt),
            PacketKind::Handshake => Some(Self::Handshake),
            PacketKind::OneRtt => Some(Self::OneRtt),
            PacketKind::Retry | PacketKind::VersionNegotiation => None,
        }
    }
}

/// A packet number space. RFC 9000 §12.3.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Space {
    /// Packets protected with Initial keys.
    Initial,
    /// Packets protected with Handshake keys.
    Handshake,
    /// 0-RTT and 1-RTT packets.
    Application,
}

impl Space {
    /// All spaces, in the order in which a handshake opens them.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Application];

    /// Returns the level of the CRYPTO frames in this space.
    pub const fn crypto_level(self) -> EncryptionLevel {
        match self {
            Self::Initial => EncryptionLevel::Initial,
            Self::Handshake => EncryptionLevel::Handshake,
            Self::Application => EncryptionLevel::OneRtt,
        }
    }
}
