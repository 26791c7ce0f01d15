//! Encryption levels and packet number spaces. RFC 9001 §2.1, RFC 9000 §12.3.

use courser_wire::PacketKind;

/// Which keys protect a packet, and which CRYPTO stream a TLS message belongs to.
///
/// The order is the order in which the levels become available to TLS.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EncryptionLevel {
    /// Keys that everybody on the path can derive.
    Initial,
    /// Early data of a resumed session.
    ZeroRtt,
    /// Keys of the TLS handshake.
    Handshake,
    /// Keys of the finished handshake.
    OneRtt,
}

impl EncryptionLevel {
    /// The packet number space of packets at this level.
    pub const fn space(self) -> Space {
        match self {
            Self::Initial => Space::Initial,
            Self::Handshake => Space::Handshake,
            Self::ZeroRtt | Self::OneRtt => Space::Application,
        }
    }

    /// The level that protects packets of this kind; `None` for those without protection.
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
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets.
    Application,
}

impl Space {
    /// All spaces in the order in which they come into being.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Application];

    /// The level at which CRYPTO frames travel in this space.
    pub const fn crypto_level(self) -> EncryptionLevel {
        match self {
            Self::Initial => EncryptionLevel::Initial,
            Self::Handshake => EncryptionLevel::Handshake,
            Self::Application => EncryptionLevel::OneRtt,
        }
    }
}
