//! Packet number spaces, and the records of frames in sent packets.

pub mod sent;

use courser_crypto::EncryptionLevel;
use courser_wire::packet::PacketKind;

/// A packet number space. RFC 9000 §12.3.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SpaceId {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets. With multipath every path would have its own space.
    Application,
}

impl SpaceId {
    /// All spaces, in the order of the handshake.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Application];

    /// Returns the encryption level whose CRYPTO data is sent in this space.
    pub const fn level(self) -> EncryptionLevel {
        match self {
            Self::Initial => EncryptionLevel::Initial,
            Self::Handshake => EncryptionLevel::Handshake,
            Self::Application => EncryptionLevel::OneRtt,
        }
    }

    /// Returns the space of the numbers of these packets. `None` if they have no number.
    pub const fn of(kind: PacketKind) -> Option<Self> {
        match kind {
            PacketKind::Initial => Some(Self::Initial),
            PacketKind::Handshake => Some(Self::Handshake),
            PacketKind::ZeroRtt | PacketKind::OneRtt => Some(Self::Application),
            PacketKind::Retry | PacketKind::VersionNegotiation => None,
        }
    }

    /// Returns the kind of packet that we send in this space once its keys are available. Before, a client
    /// may send 0-RTT packets in the last space.
    pub const fn packet_kind(self) -> PacketKind {
        match self {
            Self::Initial => PacketKind::Initial,
            Self::Handshake => PacketKind::Handshake,
            Self::Application => PacketKind::OneRtt,
        }
    }
}
