//! Coalesced packets of several spaces in one datagram. RFC 9000 §12.2, §14.1.

use courser_base::{Ecn, Side, Time};
use courser_crypto::TAG_LEN;
use courser_wire::packet::short::set_spin_bit;
use courser_wire::packet::{
    LongHeader, MIN_INITIAL_DATAGRAM, PacketKind, ShortHeader, patch_length,
};
use courser_wire::{ConnectionId, Writer, packet_number};

use super::closing::Closing;
use super::fill::Order;
use super::packets::Packets;
use super::parts::Parts;
use super::trace::Outgoing;
use crate::build::packet_builder::PacketBuilder;
use crate::protection::{PacketProtection, Sealing};
use crate::recovery::{Built, LossRecovery, PacketNumber};
use crate::space::SpaceId;
use crate::space::sent::{FrameLists, SentFrames};

/// A packet whose frames are written to the datagram, and which may still be padded.
#[derive(Clone, Copy, Debug)]
struct Unsealed {
    id: SpaceId,
    start: usize,
    number: PacketNumber,
    number_offset: usize,
    /// Offset of the Length field; short headers have none.
    length_field: Option<usize>,
    /// Offset of the tag, behind the last frame.
    frames_end: usize,
    frames: SentFrames,
    ack_eliciting: bool,
    padded: bool,
}

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
    fn write(&self, buffer: &mut [u8], number: PacketNumber) -> Option<usize> {
        let mut writer = Writer::new(buffer);
        let length_field = match self {
            Self::Long(header) => Some(header.encode(&mut writer, number.len)),
            Self::Short(header) => {
                header.encode(&mut writer, number.len);
                None
            }
        };
        packet_number::write(&mut writer, number.value, number.len);
        length_field
    }
}

impl Packets {
    /// Returns the header of a packet on the path in use.
    fn header<'a>(&self, id: SpaceId, parts: &'a Parts) -> Header<'a> {
        let destination = parts.ids.destination();
        match id {
            SpaceId::Application if self.protection.seals_zero_rtt() => {
                let kind = PacketKind::ZeroRtt;
                Header::Long(parts.handshake.long_header(kind, destination))
            }
            SpaceId::Application => Header::Short(ShortHeader {
                destination,
                spin: false,
                key_phase: self.protection.key_phase().unwrap_or_default(),
            }),
            _ => Header::Long(parts.handshake.long_header(id.packet_kind(), destination)),
        }
    }
}

/// A datagram that is composed of packets of several spaces. They are sealed when it is complete,
/// because the last of them takes the padding.
#[derive(Debug)]
pub(super) struct CoalescedDatagram<'a> {
    buffer: &'a mut [u8],
    /// The packets, by their spaces.
    packets: [Option<Unsealed>; 3],
    len: usize,
}

impl<'a> CoalescedDatagram<'a> {
    /// Begins a datagram that is written to `buffer`.
    pub(super) fn new(buffer: &'a mut [u8]) -> Self {
        Self {
            buffer,
            packets: [None; 3],
            len: 0,
        }
    }

    /// Returns true while there is no packet.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the length in bytes; without the packets that are still to be added.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there is a packet of this space.
    pub(super) fn has(&self, id: SpaceId) -> bool {
        self.packets[id as usize].is_some()
    }

    /// Adds a packet that `parts` fill, if they have frames for its space that fit.
    pub(super) fn add(&mut self, order: Order, packets: &mut Packets, parts: &mut Parts) {
        let id = order.space;
        let Some(number) = packets.recovery.next_number(id) else {
            return;
        };
        let payload_start = self.len + packets.header(id, parts).encoded_len() + number.len;
        let frames_end = self.buffer.len().saturating_sub(TAG_LEN);
        if frames_end <= payload_start + 8 {
            return;
        }
        let (lists, mut filling) = packets.recovery.filling();
        let buffer = &mut self.buffer[payload_start..frames_end];
        let mut packet = PacketBuilder::new(buffer, lists);
        parts.fill(&mut packet, order, &mut filling);
        if packet.is_empty() {
            return;
        }
        packet.pad_to(4 - number.len);
        let (ack_eliciting, padded) = (packet.is_ack_eliciting(), packet.is_padded());
        let (len, frames) = packet.finish();
        let header = packets.header(id, parts);
        let packet = Unsealed {
            frames,
            ack_eliciting,
            padded,
            ..self.write_header(id, &header, number, len)
        };
        self.push(packet);
    }

    /// Adds a packet with CONNECTION_CLOSE. Returns false if the space does not exist, or the packet does
    /// not fit.
    pub(super) fn add_close(
        &mut self,
        id: SpaceId,
        closing: &Closing,
        packets: &Packets,
        parts: &Parts,
    ) -> bool {
        let Some(number) = packets.recovery.next_number(id) else {
            return false;
        };
        let header = packets.header(id, parts);
        let payload_start = self.len + header.encoded_len() + number.len;
        let frames_end = self.buffer.len().saturating_sub(TAG_LEN);
        if frames_end < payload_start + 24 {
            return false;
        }
        let mut lists = FrameLists::default();
        let buffer = &mut self.buffer[payload_start..frames_end];
        let mut packet = PacketBuilder::new(buffer, &mut lists);
        closing.encode(id, packet.writer());
        packet.pad_to(4 - number.len);
        let len = packet.end();
        let packet = self.write_header(id, &header, number, len);
        self.push(packet);
        true
    }

    /// Writes the header in front of the `len` bytes of frames of the next packet.
    fn write_header(
        &mut self,
        id: SpaceId,
        header: &Header<'_>,
        number: PacketNumber,
        len: usize,
    ) -> Unsealed {
        let start = self.len;
        let number_offset = start + header.encoded_len();
        let length_field = header.write(&mut self.buffer[start..], number);
        Unsealed {
            id,
            start,
            number,
            number_offset,
            length_field: length_field.map(|offset| start + offset),
            frames_end: number_offset + number.len + len,
            frames: SentFrames::default(),
            ack_eliciting: false,
            padded: false,
        }
    }

    fn push(&mut self, packet: Unsealed) {
        self.len = packet.end();
        self.packets[packet.id as usize] = Some(packet);
    }

    /// Pads a datagram with an Initial of a client, or an ack-eliciting one of a server, to 1200 bytes
    /// (§14.1). The padding is in the last packet, because bytes behind it would be read as a packet.
    pub(super) fn pad(&mut self, side: Side) {
        let needs = self.packets[SpaceId::Initial as usize]
            .is_some_and(|initial| side.is_client() || initial.ack_eliciting);
        if needs {
            self.pad_to(MIN_INITIAL_DATAGRAM);
        }
    }

    /// Pads a datagram to this length, in its last packet.
    pub(super) fn pad_to(&mut self, len: usize) {
        let Some(last) = self.packets.iter_mut().flatten().last() else {
            return;
        };
        let goal = len.min(self.buffer.len());
        if last.end() < goal {
            let frames_end = goal - TAG_LEN;
            self.buffer[last.frames_end..frames_end].fill(0);
            last.frames_end = frames_end;
            last.padded = true;
            self.len = goal;
        }
    }

    /// Returns the ECN mark of the datagram: that of the path if all of its packets may have it.
    pub(super) fn common_mark(&self, recovery: &LossRecovery) -> Ecn {
        let codepoint = recovery.path().ecn_codepoint();
        let packets = self.packets.iter().flatten();
        let mut marks = packets.filter_map(|packet| recovery.mark(packet.id));
        if marks.all(|mark| mark == codepoint) {
            codepoint
        } else {
            Ecn::NotEct
        }
    }

    /// Records the complete packet of a space and seals it in place. Returns the values that loss recovery
    /// stores.
    pub(super) fn seal(
        &mut self,
        now: Time,
        id: SpaceId,
        protection: &mut PacketProtection,
        parts: &mut Parts,
    ) -> Option<Built> {
        let packet = self.packets[id as usize].as_ref()?;
        let quic_bit_cleared = packet.seal(now, self.buffer, protection, parts);
        Some(Built {
            number: packet.number.value,
            len: packet.end() - packet.start,
            frames: packet.frames,
            ack_eliciting: packet.ack_eliciting,
            in_flight: packet.ack_eliciting || packet.padded,
            quic_bit_cleared,
            follows_in_batch: false,
        })
    }
}

impl Unsealed {
    /// Returns the offset behind the last byte.
    fn end(&self) -> usize {
        self.frames_end + TAG_LEN
    }

    /// Records the complete packet and seals it in place. Returns true if its QUIC bit is cleared.
    fn seal(
        &self,
        now: Time,
        buffer: &mut [u8],
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
            number: self.number.value,
            len: self.end() - self.start,
            ack_eliciting: self.ack_eliciting,
            destination: parts.ids.destination(),
            source,
            version: match kind {
                PacketKind::OneRtt => 0,
                kind => parts.handshake.version().of_kind(kind).value(),
            },
        };
        let payload_start = self.number_offset + self.number.len;
        let payload = &buffer[payload_start..self.frames_end];
        parts.trace.packet_sent(now, outgoing, payload);
        if let Some(offset) = self.length_field {
            patch_length(buffer, offset, self.end() - self.number_offset);
        }
        let bytes = &mut buffer[self.start..self.end()];
        if is_short {
            let spin = parts
                .paths
                .spin
                .next(parts.ids.destination(), &mut parts.rng);
            set_spin_bit(&mut bytes[0], spin);
        }
        let is_cleared = parts.bits.grease(&mut bytes[0], &mut parts.rng);
        let sealing = Sealing {
            path: parts.path_at_hand(),
            number: self.number.value,
            number_offset: self.number_offset - self.start,
            number_len: self.number.len,
        };
        protection.seal(self.id, sealing, bytes);
        is_cleared
    }
}
