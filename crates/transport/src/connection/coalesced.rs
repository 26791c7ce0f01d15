//! Packets of several spaces side by side in one datagram. RFC 9000 §12.2, §14.1.

use courser_base::{Ecn, Side, Time};
use courser_crypto::TAG_LEN;
use courser_wire::packet::short::set_spin_bit;
use courser_wire::packet::{
    LongHeader, MIN_INITIAL_DATAGRAM, PacketKind, ShortHeader, patch_length,
};
use courser_wire::{ConnectionId, Writer, packet_number};

use super::closing::Closing;
use super::fill::Order;
use super::parts::{Packets, Parts};
use super::trace::Outgoing;
use crate::build::packet_builder::PacketBuilder;
use crate::protection::{PacketProtection, Sealing};
use crate::recovery::{Built, LossRecovery};
use crate::space::SpaceId;
use crate::space::sent::{FrameLists, SentFrames};

/// A packet whose frames stand in the datagram and that may still be padded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unsealed {
    id: SpaceId,
    start: usize,
    number: u64,
    number_offset: usize,
    number_len: usize,
    /// Offset of the Length field; short headers have none.
    length_field: Option<usize>,
    /// One past the last frame; the tag comes here.
    frames_end: usize,
    frames: SentFrames,
    ack_eliciting: bool,
    padded: bool,
}

/// The packets of a datagram, by their spaces.
pub(super) type Coalesced = [Option<Unsealed>; 3];

/// The header of a packet.
enum Header<'a> {
    Long(LongHeader<'a>),
    Short(ShortHeader),
}

impl Header<'_> {
    fn encoded_len(&self) -> usize {
        match self {
            Self::Long(header) => header.encoded_len(),
            Self::Short(header) => header.encoded_len(),
        }
    }

    /// Writes header and packet number; returns the offset of the Length field.
    fn write(&self, room: &mut [u8], number: u64, number_len: usize) -> Option<usize> {
        let mut writer = Writer::new(room);
        let length_field = match self {
            Self::Long(header) => Some(header.encode(&mut writer, number_len)),
            Self::Short(header) => {
                header.encode(&mut writer, number_len);
                None
            }
        };
        packet_number::write(&mut writer, number, number_len);
        length_field
    }
}

/// Returns the header of a packet on the path in use.
fn header<'a>(id: SpaceId, protection: &PacketProtection, parts: &'a Parts) -> Header<'a> {
    let destination = parts.ids.destination();
    match id {
        SpaceId::Application if protection.seals_zero_rtt() => {
            let kind = PacketKind::ZeroRtt;
            Header::Long(parts.handshake.long_header(kind, destination))
        }
        SpaceId::Application => Header::Short(ShortHeader {
            destination,
            spin: false,
            key_phase: protection.key_phase().unwrap_or_default(),
        }),
        _ => Header::Long(parts.handshake.long_header(id.packet_kind(), destination)),
    }
}

impl Unsealed {
    /// Writes header and frames at `at`; the packet is sealed when the datagram is complete. `None`
    /// when the space has nothing to send, or there is no room.
    pub(super) fn build(
        order: Order,
        (room, at): (&mut [u8], usize),
        packets: &mut Packets,
        parts: &mut Parts,
    ) -> Option<Self> {
        let id = order.space;
        let (number, number_len) = packets.recovery.next_number(id)?;
        let payload_start = at + header(id, &packets.protection, parts).encoded_len() + number_len;
        let frames_end = room
            .len()
            .checked_sub(TAG_LEN)
            .filter(|&end| end > payload_start + 8)?;
        let (lists, mut filling) = packets.recovery.filling();
        let mut packet = PacketBuilder::new(&mut room[payload_start..frames_end], lists);
        parts.fill(&mut packet, order, &mut filling);
        if packet.is_empty() {
            return None;
        }
        packet.pad_to(4 - number_len);
        let (ack_eliciting, padded) = (packet.is_ack_eliciting(), packet.is_padded());
        let (len, frames) = packet.finish();
        let header = header(id, &packets.protection, parts);
        Some(Self {
            frames,
            ack_eliciting,
            padded,
            ..Self::with_header(id, &header, (room, at), (number, number_len), len)
        })
    }

    /// Writes header and CONNECTION_CLOSE at `at`. `None` when the space is not open, or there is no
    /// room.
    pub(super) fn build_close(
        id: SpaceId,
        closing: &Closing,
        (room, at): (&mut [u8], usize),
        packets: &Packets,
        parts: &Parts,
    ) -> Option<Self> {
        let (number, number_len) = packets.recovery.next_number(id)?;
        let header = header(id, &packets.protection, parts);
        let payload_start = at + header.encoded_len() + number_len;
        let frames_end = room.len().saturating_sub(TAG_LEN);
        if frames_end < payload_start + 24 {
            return None;
        }
        let mut lists = FrameLists::default();
        let mut packet = PacketBuilder::new(&mut room[payload_start..frames_end], &mut lists);
        closing.encode(id, packet.writer());
        packet.pad_to(4 - number_len);
        let len = packet.end();
        let numbered = (number, number_len);
        Some(Self::with_header(id, &header, (room, at), numbered, len))
    }

    /// Writes the header of a packet at `at` whose `len` bytes of frames stand in place.
    fn with_header(
        id: SpaceId,
        header: &Header<'_>,
        (room, at): (&mut [u8], usize),
        (number, number_len): (u64, usize),
        len: usize,
    ) -> Self {
        let number_offset = at + header.encoded_len();
        let length_field = header.write(&mut room[at..], number, number_len);
        Self {
            id,
            start: at,
            number,
            number_offset,
            number_len,
            length_field: length_field.map(|offset| at + offset),
            frames_end: number_offset + number_len + len,
            frames: SentFrames::default(),
            ack_eliciting: false,
            padded: false,
        }
    }

    /// The packet number space.
    pub(super) fn id(&self) -> SpaceId {
        self.id
    }

    /// One past the last byte.
    pub(super) fn end(&self) -> usize {
        self.frames_end + TAG_LEN
    }

    /// Returns the packet as loss recovery remembers it.
    pub(super) fn built(&self) -> Built {
        Built {
            number: self.number,
            len: self.end() - self.start,
            frames: self.frames,
            ack_eliciting: self.ack_eliciting,
            in_flight: self.ack_eliciting || self.padded,
            quic_bit_cleared: false,
            follows_in_batch: false,
        }
    }

    /// Records a packet that stands complete, and seals it in place. Returns true if its QUIC bit is
    /// cleared.
    pub(super) fn seal(
        &self,
        now: Time,
        room: &mut [u8],
        protection: &mut PacketProtection,
        parts: &mut Parts,
    ) -> bool {
        let is_short = self.length_field.is_none();
        let source: Option<ConnectionId> = (!is_short).then(|| parts.handshake.local_id());
        let kind = match self.id {
            SpaceId::Application if !is_short => PacketKind::ZeroRtt,
            id => id.packet_kind(),
        };
        let outgoing = Outgoing {
            kind,
            number: self.number,
            len: self.end() - self.start,
            ack_eliciting: self.ack_eliciting,
            destination: parts.ids.destination(),
            source,
            version: match kind {
                PacketKind::OneRtt => 0,
                kind => parts.handshake.version().of_kind(kind).value(),
            },
        };
        let payload_start = self.number_offset + self.number_len;
        let payload = &room[payload_start..self.frames_end];
        parts.trace.packet_sent(now, outgoing, payload);
        if let Some(offset) = self.length_field {
            patch_length(room, offset, self.end() - self.number_offset);
        }
        let bytes = &mut room[self.start..self.end()];
        if is_short {
            let spin = parts
                .bits
                .next_spin(parts.ids.destination(), &mut parts.rng);
            set_spin_bit(&mut bytes[0], spin);
        }
        let is_cleared = parts.bits.grease(&mut bytes[0], &mut parts.rng);
        let sealing = Sealing {
            number: self.number,
            number_offset: self.number_offset - self.start,
            number_len: self.number_len,
        };
        protection.seal(self.id, sealing, bytes);
        is_cleared
    }
}

/// Pads a datagram: those with a client's Initial, or a server's that asks for an answer, have at
/// least 1200 bytes (§14.1). The last packet takes the padding: whatever is behind it would be read
/// as a packet.
pub(super) fn pad(side: Side, packets: &mut Coalesced, room: &mut [u8]) {
    let needs = packets[SpaceId::Initial as usize]
        .is_some_and(|initial| side.is_client() || initial.ack_eliciting);
    let Some(last) = packets.iter_mut().flatten().last() else {
        return;
    };
    let goal = MIN_INITIAL_DATAGRAM.min(room.len());
    if needs && last.end() < goal {
        let frames_end = goal - TAG_LEN;
        room[last.frames_end..frames_end].fill(0);
        last.frames_end = frames_end;
        last.padded = true;
    }
}

/// Returns the ECN mark of a datagram: the path's if all of its packets may carry it.
pub(super) fn common_mark(packets: &Coalesced, recovery: &LossRecovery) -> Ecn {
    let codepoint = recovery.path().ecn_codepoint();
    let packets = packets.iter().flatten();
    let mut marks = packets.filter_map(|packet| recovery.mark(packet.id));
    if marks.all(|mark| mark == codepoint) {
        codepoint
    } else {
        Ecn::NotEct
    }
}
