//! A packet number space: its keys, what was sent and received in it, its CRYPTO stream.

pub mod ack_policy;
pub mod ack_request;
pub mod crypto_stream;
pub mod received;
pub mod sent;

use std::time::Duration;

use courser_base::Time;
use courser_crypto::{EncryptionLevel, KeyPair};
use courser_recovery::{EcnValidation, LossDetector, SentPackets};
use courser_wire::packet::PacketKind;

use self::ack_policy::{AckEliciting, AckPolicy};
use self::crypto_stream::CryptoStream;
use self::received::Received;
use self::sent::SentFrames;

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
    /// Keys of the Initial and Handshake spaces. The application space has its keys in the
    /// connection's key phase, because they change.
    pub keys: Option<KeyPair>,
    /// Number of the next packet.
    pub next_packet_number: u64,
    /// What is in flight or not yet decided.
    pub sent: SentPackets<SentFrames>,
    /// Finds losses among `sent`.
    pub loss: LossDetector,
    /// What arrived and must be acknowledged.
    pub received: Received,
    /// When to acknowledge.
    pub acks: AckPolicy,
    /// Do ECN marks survive; peers count them per space.
    pub ecn: EcnValidation,
    /// The TLS bytes of this level.
    pub crypto: CryptoStream,
    /// Ack-eliciting packets whose fate is open.
    pub ack_eliciting_in_flight: usize,
    /// When the last ack-eliciting packet left.
    pub last_ack_eliciting_sent: Option<Time>,
    /// Probe packets that a timeout asks for (RFC 9002 §6.2.4).
    pub probes: u8,
    /// A PING is owed: for a probe without data, a keep-alive, or a streak of pure ACKs.
    pub ping: bool,
}

impl PacketNumberSpace {
    /// An empty space; CRYPTO may run `crypto_limit` bytes ahead of what TLS has read.
    pub fn new(crypto_limit: u64, ecn: bool) -> Self {
        let ecn = if ecn {
            EcnValidation::new()
        } else {
            EcnValidation::disabled()
        };
        Self {
            keys: None,
            next_packet_number: 0,
            sent: SentPackets::new(),
            loss: LossDetector::new(),
            received: Received::default(),
            acks: AckPolicy::default(),
            ecn,
            crypto: CryptoStream::new(crypto_limit),
            ack_eliciting_in_flight: 0,
            last_ack_eliciting_sent: None,
            probes: 0,
            ping: false,
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
