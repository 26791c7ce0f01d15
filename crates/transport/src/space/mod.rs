//! The receiving half of a packet number space: received packets and the CRYPTO stream.

pub mod ack_policy;
pub mod ack_request;
pub mod crypto_stream;
pub mod received;
pub mod sent;

use std::time::Duration;

use courser_base::Time;
use courser_crypto::EncryptionLevel;
use courser_wire::packet::PacketKind;

use self::ack_policy::{AckEliciting, AckPolicy};
use self::crypto_stream::CryptoStream;
use self::received::Received;

/// Which packet number space. RFC 9000 §12.3.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SpaceId {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 1-RTT packets. Every path has its own with multipath; there is one today.
    Application,
}

impl SpaceId {
    /// All spaces in the order of the handshake.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Application];

    /// The encryption level whose CRYPTO stream travels here.
    pub const fn level(self) -> EncryptionLevel {
        match self {
            Self::Initial => EncryptionLevel::Initial,
            Self::Handshake => EncryptionLevel::Handshake,
            Self::Application => EncryptionLevel::OneRtt,
        }
    }

    /// The space that packets of this kind are numbered in, if they have numbers that we use.
    pub const fn of(kind: PacketKind) -> Option<Self> {
        match kind {
            PacketKind::Initial => Some(Self::Initial),
            PacketKind::Handshake => Some(Self::Handshake),
            PacketKind::OneRtt => Some(Self::Application),
            PacketKind::ZeroRtt | PacketKind::Retry | PacketKind::VersionNegotiation => None,
        }
    }

    /// The kind of packet we send in this space.
    pub const fn packet_kind(self) -> PacketKind {
        match self {
            Self::Initial => PacketKind::Initial,
            Self::Handshake => PacketKind::Handshake,
            Self::Application => PacketKind::OneRtt,
        }
    }
}

/// State of one packet number space.
#[derive(Debug)]
pub struct PacketNumberSpace {
    /// Packets that arrived and must be acknowledged.
    pub received: Received,
    /// When to acknowledge.
    pub acks: AckPolicy,
    /// The TLS bytes of this level.
    pub crypto: CryptoStream,
}

impl PacketNumberSpace {
    /// Creates an empty space. CRYPTO data may run `crypto_limit` bytes ahead of TLS.
    pub fn new(crypto_limit: u64) -> Self {
        Self {
            received: Received::default(),
            acks: AckPolicy::default(),
            crypto: CryptoStream::new(crypto_limit),
        }
    }

    /// An ack-eliciting packet arrived and is noted in `received`.
    pub fn on_ack_eliciting(
        &mut self,
        now: Time,
        id: SpaceId,
        packet: &AckEliciting,
        max_ack_delay: Duration,
    ) {
        if id == SpaceId::Application {
            self.acks
                .on_ack_eliciting(now, packet, &self.received, max_ack_delay);
        } else {
            self.acks.on_handshake_packet();
        }
    }
}
