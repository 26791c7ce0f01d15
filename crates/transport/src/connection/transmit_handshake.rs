//! Datagrams of the handshake: packets of several spaces side by side. RFC 9000 §12.2, §14.1.

use courser_base::{Ecn, Side, Time};
use courser_crypto::TAG_LEN;
use courser_wire::packet::{
    LongHeader, MIN_INITIAL_DATAGRAM, PacketKind, ShortHeader, patch_length,
};
use courser_wire::version::VERSION_1;
use courser_wire::{Writer, packet_number};

use super::Connection;
use super::fill::Content;
use super::trace::Outgoing;
use crate::build::packet_builder::PacketBuilder;
use crate::build::transmit::{Transmit, TransmitBuffer};
use crate::path::MIN_DATAGRAM;
use crate::protection::Sealing;
use crate::recovery::{Built, SendPermit};
use crate::space::SpaceId;
use crate::space::sent::{FrameLists, SentFrames};

/// A packet whose frames stand in the datagram and that may still be padded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unsealed {
    pub(super) id: SpaceId,
    start: usize,
    pub(super) number: u64,
    number_offset: usize,
    number_len: usize,
    /// Where the Length field is; short headers have none.
    length_field: Option<usize>,
    /// One past the last frame; the tag comes here.
    frames_end: usize,
    frames: SentFrames,
    pub(super) ack_eliciting: bool,
    padded: bool,
}

impl Unsealed {
    /// One past the last byte.
    pub(super) fn end(&self) -> usize {
        self.frames_end + TAG_LEN
    }
}

impl Connection {
    /// One datagram with whatever the spaces have to say.
    pub(super) fn transmit_handshake(
        &mut self,
        now: Time,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        let limit = self.handshake_limit()?;
        let (recovery, mut owners) = self.recovery_and_owners();
        recovery.repeat_for_probes(&mut owners);
        let room = buffer.room(limit);
        let mut lists = self.recovery.take_lists();
        let mut packets: [Option<Unsealed>; 3] = [None; 3];
        let mut at = 0;
        for id in SpaceId::ALL {
            let Some(content) = self.handshake_content(now, id, limit) else {
                continue;
            };
            let packet = self.build_unsealed(now, id, (room, at), &mut lists, content);
            if let Some(packet) = packet {
                at = packet.end();
                packets[id as usize] = Some(packet);
            }
        }
        self.recovery.put_lists(lists);
        if at == 0 {
            return None;
        }
        self.pad_datagram(&mut packets, room);
        let ecn = self.common_mark(&packets);
        let len = self.seal_all(now, &packets, room, ecn);
        buffer.advance(len);
        let path = self.paths.active_mut();
        path.on_datagram_sent(len);
        let tuple = path.tuple;
        self.recovery.on_handshake_datagram_sent(len);
        if self.side.is_client() && packets[SpaceId::Handshake as usize].is_some() {
            // RFC 9001 §4.9.1: the server has shown Handshake keys, Initials are done.
            self.discard_space(now, SpaceId::Initial);
        }
        Some(Transmit {
            destination: tuple.peer,
            source: tuple.local,
            ecn,
            segment_size: None,
            len,
        })
    }

    /// Room for a handshake datagram; `None` when nothing may be sent.
    pub(super) fn handshake_limit(&self) -> Option<usize> {
        let path = self.paths.active();
        let budget = usize::try_from(path.amplification.budget()).unwrap_or(usize::MAX);
        let limit = usize::from(self.recovery.route().mtu())
            .min(HANDSHAKE_MTU)
            .min(budget);
        (limit >= MIN_DATAGRAM).then_some(limit)
    }

    fn handshake_content(&mut self, now: Time, id: SpaceId, limit: usize) -> Option<Content> {
        if !self.can_seal(id) {
            return None;
        }
        if id == SpaceId::Initial && limit < MIN_INITIAL_DATAGRAM {
            // Nothing that asks for an answer, because then the datagram had to be a full one.
            return Some(Content::AckOnly);
        }
        match self.permit(now, id) {
            SendPermit::Nothing => None,
            SendPermit::AckOnly | SendPermit::PacedUntil(_) => Some(Content::AckOnly),
            SendPermit::Probe | SendPermit::Bytes(_) => Some(Content::All),
        }
    }

    pub(super) fn can_seal(&self, id: SpaceId) -> bool {
        let may_send = id != SpaceId::Application || self.may_send_application();
        may_send && self.protection.has_keys(id)
    }

    /// A client's 1-RTT packets wait for its Finished; a server may speak before it has the
    /// client's (RFC 9001 §5.7), but not to an address that nobody has proven.
    pub(super) fn may_send_application(&self) -> bool {
        match self.side {
            Side::Client => !self.state.is_handshaking(),
            Side::Server => self.paths.active().amplification.is_validated(),
        }
    }

    /// Writes header and frames at `at`; the packet is sealed when the datagram is complete.
    pub(super) fn build_unsealed(
        &mut self,
        now: Time,
        id: SpaceId,
        (room, at): (&mut [u8], usize),
        lists: &mut FrameLists,
        content: Content,
    ) -> Option<Unsealed> {
        let (number, number_len) = self.recovery.next_number(id)?;
        let header_len = self.header_len(id);
        let payload_start = at + header_len + number_len;
        let frames_end = room
            .len()
            .checked_sub(TAG_LEN)
            .filter(|&end| end > payload_start + 8)?;
        let mut packet = PacketBuilder::new(&mut room[payload_start..frames_end], lists);
        self.fill(now, id, &mut packet, content);
        if packet.is_empty() {
            return None;
        }
        packet.pad_to(4 - number_len);
        let (ack_eliciting, padded) = (packet.is_ack_eliciting(), packet.is_padded());
        let (len, frames) = packet.finish();
        let unsealed = self.unsealed(id, room, at, (number, number_len), len);
        Some(Unsealed {
            frames,
            ack_eliciting,
            padded,
            ..unsealed
        })
    }

    /// Writes the header of a packet at `at` whose `len` bytes of frames stand in place.
    pub(super) fn unsealed(
        &self,
        id: SpaceId,
        room: &mut [u8],
        at: usize,
        (number, number_len): (u64, usize),
        len: usize,
    ) -> Unsealed {
        let number_offset = at + self.header_len(id);
        let length_field = self.write_header(id, &mut room[at..], number, number_len);
        Unsealed {
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

    fn long_header(&self, kind: PacketKind) -> LongHeader<'_> {
        let client_initial = kind == PacketKind::Initial && self.side.is_client();
        LongHeader {
            kind,
            version: VERSION_1,
            destination: *self.cids.peer.current(),
            source: self.handshake.local_source,
            token: if client_initial {
                &self.handshake.token
            } else {
                &[]
            },
        }
    }

    fn short_header(&self) -> ShortHeader {
        let key_phase = self.protection.key_phase().unwrap_or_default();
        ShortHeader {
            destination: *self.cids.peer.current(),
            spin: false,
            key_phase,
        }
    }

    pub(super) fn header_len(&self, id: SpaceId) -> usize {
        match id {
            SpaceId::Application => self.short_header().encoded_len(),
            _ => self.long_header(id.packet_kind()).encoded_len(),
        }
    }

    /// Writes header and packet number; returns where the Length field is.
    fn write_header(
        &self,
        id: SpaceId,
        room: &mut [u8],
        number: u64,
        number_len: usize,
    ) -> Option<usize> {
        let mut writer = Writer::new(room);
        let length_field = match id {
            SpaceId::Application => {
                self.short_header().encode(&mut writer, number_len);
                None
            }
            _ => Some(
                self.long_header(id.packet_kind())
                    .encode(&mut writer, number_len),
            ),
        };
        packet_number::write(&mut writer, number, number_len);
        length_field
    }

    /// Datagrams with a client's Initial, or a server's that asks for an answer, have at least
    /// 1200 bytes (§14.1). The last packet takes the padding: whatever is behind it would be
    /// read as a packet.
    pub(super) fn pad_datagram(&self, packets: &mut [Option<Unsealed>; 3], room: &mut [u8]) {
        let needs = packets[SpaceId::Initial as usize]
            .is_some_and(|initial| self.side.is_client() || initial.ack_eliciting);
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

    fn common_mark(&self, packets: &[Option<Unsealed>; 3]) -> Ecn {
        let codepoint = self.recovery.route().ecn_codepoint();
        let packets = packets.iter().flatten();
        let mut marks = packets.filter_map(|packet| self.recovery.mark(packet.id));
        if marks.all(|mark| mark == codepoint) {
            codepoint
        } else {
            Ecn::NotEct
        }
    }

    fn seal_all(
        &mut self,
        now: Time,
        packets: &[Option<Unsealed>; 3],
        room: &mut [u8],
        ecn: Ecn,
    ) -> usize {
        let mut end = 0;
        for packet in packets.iter().flatten() {
            end = packet.end();
            self.record_unsealed(now, packet, room);
            self.seal(packet, room);
            let built = Built {
                number: packet.number,
                len: end - packet.start,
                frames: packet.frames,
                ack_eliciting: packet.ack_eliciting,
                in_flight: packet.ack_eliciting || packet.padded,
            };
            self.on_packet_sent(now, packet.id, &built, ecn);
            self.recovery.on_handshake_packet_sent(now, &built);
        }
        end
    }

    /// Records a packet that stands complete but in the clear.
    pub(super) fn record_unsealed(&mut self, now: Time, packet: &Unsealed, room: &[u8]) {
        let outgoing = Outgoing {
            id: packet.id,
            number: packet.number,
            len: packet.end() - packet.start,
            ack_eliciting: packet.ack_eliciting,
            is_mtu_probe: false,
            destination: *self.cids.peer.current(),
        };
        let payload_start = packet.number_offset + packet.number_len;
        self.record_packet_sent(now, outgoing, &room[payload_start..packet.frames_end]);
    }

    /// Seals a packet in place and takes its number.
    pub(super) fn seal(&mut self, packet: &Unsealed, room: &mut [u8]) {
        if let Some(offset) = packet.length_field {
            patch_length(room, offset, packet.end() - packet.number_offset);
        }
        let bytes = &mut room[packet.start..packet.end()];
        let sealing = Sealing {
            number: packet.number,
            number_offset: packet.number_offset - packet.start,
            number_len: packet.number_len,
        };
        self.protection.seal(packet.id, sealing, bytes);
    }
}

/// Handshake datagrams stay below this however large the path's datagrams are: the Length field
/// of a long header has two bytes.
const HANDSHAKE_MTU: usize = 1472;
