//! Numbers, protects and stores packets, independent of their frames. RFC 9000 §12, §17.3.1.

use courser_crypto::TAG_LEN;
use courser_wire::packet::{PacketKind, ShortHeader};
use courser_wire::{Writer, packet_number};

use super::fill::{Content, Order};
use super::parts::Parts;
use super::trace::Outgoing;
use crate::build::packet_builder::PacketBuilder;
use crate::protection::{PacketProtection, Sealing};
use crate::recovery::{Built, LossRecovery};

/// The parts that number and protect packets, and store those in flight.
#[derive(Debug)]
pub(super) struct Packets {
    pub(super) recovery: LossRecovery,
    pub(super) protection: PacketProtection,
    /// True if packets with application data are as long as datagrams may be.
    pub(super) pads: bool,
}

impl Packets {
    /// Builds, seals and protects one 1-RTT packet at the start of `buffer`, with the frames of `parts`.
    /// Returns `None` if they have none to send.
    #[inline]
    pub(super) fn build_short(
        &mut self,
        order: Order,
        buffer: &mut [u8],
        parts: &mut Parts,
    ) -> Option<Built> {
        let number = self.recovery.next_number(order.space)?;
        let key_phase = self.protection.key_phase()?;
        let destination = match order.content {
            Content::Probe(index) => parts.paths.destination(index, &mut parts.ids),
            Content::OffPath => parts.off_path_destination(),
            _ => parts.ids.destination(),
        };
        let header = ShortHeader {
            destination,
            spin: parts.paths.spin.next(destination, &mut parts.rng),
            key_phase,
        };
        let payload_start = header.encoded_len() + number.len;
        let frames_end = buffer
            .len()
            .checked_sub(TAG_LEN)
            .filter(|&end| end > payload_start)?;
        let (lists, mut filling) = self.recovery.filling();
        let mut packet = PacketBuilder::new(&mut buffer[payload_start..frames_end], lists);
        parts.fill(&mut packet, order, &mut filling);
        if packet.is_empty() {
            return None;
        }
        // A header protection sample needs four bytes behind the start of the number
        // (RFC 9001 §5.4.2).
        packet.pad_to(4 - number.len);
        let ack_eliciting = packet.is_ack_eliciting();
        if ack_eliciting {
            // Other contents have a size of their own.
            let is_full = self.pads && matches!(order.content, Content::All | Content::Further);
            packet.pad_to(match is_full {
                true => usize::MAX,
                false => MIN_ACK_ELICITING.saturating_sub(payload_start + TAG_LEN),
            });
        }
        let in_flight = ack_eliciting || packet.is_padded();
        let frames_len = packet.end();
        let len = payload_start + frames_len + TAG_LEN;
        let bytes = &mut buffer[..len];
        let mut writer = Writer::new(bytes);
        header.encode(&mut writer, number.len);
        packet_number::write(&mut writer, number.value, number.len);
        let quic_bit_cleared = parts.bits.grease(&mut bytes[0], &mut parts.rng);
        let outgoing = Outgoing {
            kind: PacketKind::OneRtt,
            number: number.value,
            len,
            ack_eliciting,
            destination,
            source: None,
            version: 0,
        };
        let payload = &bytes[payload_start..][..frames_len];
        parts.trace.packet_sent(order.now, outgoing, payload);
        let sealing = Sealing {
            path: parts.path_at_hand(),
            number: number.value,
            number_offset: payload_start - number.len,
            number_len: number.len,
        };
        self.protection.seal(order.space, sealing, bytes);
        Some(Built {
            number: number.value,
            len,
            frames: self.recovery.take_record(),
            ack_eliciting,
            in_flight,
            quic_bit_cleared,
            follows_in_batch: order.content == Content::Further,
        })
    }
}

/// The minimum length of an ack-eliciting packet in bytes, so that a peer without state can send a
/// stateless reset, which is shorter than the packet that it answers (RFC 9000 §10.3, limit K18).
const MIN_ACK_ELICITING: usize = 43;
