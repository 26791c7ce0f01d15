//! Assembly and sealing of packets.

use courser_base::{RangeSet, Time};
use courser_crypto::{Space, TAG_LEN, header_protection};
use courser_wire::packet::{LongHeader, PacketKind, ShortHeader, patch_length};
use courser_wire::{Ack, Crypto, Frame, MIN_INITIAL_DATAGRAM, VERSION_1, Writer, packet_number};

use super::{Connection, DATAGRAM};
use crate::encode::encode;
use crate::hooks::{Fate, PacketToSend};

impl Connection {
    /// Writes handshake data, acknowledgments and queued frames that are due into datagrams.
    pub fn transmit(&mut self, now: Time) {
        self.repeat_handshake(now);
        for space in [Space::Initial, Space::Handshake, Space::Application] {
            if !self.can_send(space) {
                continue;
            }
            let mut frames = Vec::new();
            frames.extend(self.ack_frame(now, space));
            self.take_crypto(now, space, &mut frames);
            if space == Space::Application {
                self.take_queued(now, &mut frames);
            }
            if !frames.is_empty() {
                self.send_packet(now, space, frames);
            }
        }
    }

    /// Sends one packet with these frames immediately, as far as the hooks permit.
    ///
    /// The frames are not split. A packet may be empty or as large as UDP permits.
    pub fn send_packet(&mut self, now: Time, space: Space, frames: Vec<Vec<u8>>) {
        let number = self.numbers(space).next;
        self.numbers_mut(space).next = number + 1;
        let mut packet = PacketToSend {
            space,
            number,
            destination: self.peer_id,
            frames,
            // Both sides pad datagrams with an Initial (RFC 9000 §14.1).
            pad_to: match space {
                Space::Initial => MIN_INITIAL_DATAGRAM,
                _ => 0,
            },
        };
        let fate = self.hooks.on_packet(now, &mut packet);
        if fate == Fate::Drop {
            return;
        }
        let Some(sealed) = self.seal(&packet) else {
            return;
        };
        let mut datagram = std::mem::take(&mut self.joined);
        datagram.extend(sealed);
        match fate {
            Fate::Hold => {
                let earlier = self.held.replace(datagram);
                self.datagrams.extend(earlier);
                return;
            }
            Fate::Join => {
                self.joined = datagram;
                return;
            }
            Fate::Duplicate => self.datagrams.push_back(datagram.clone()),
            Fate::Send | Fate::Drop => {}
        }
        self.datagrams.push_back(datagram);
        self.datagrams.extend(self.held.take());
    }

    /// Seals a packet into a datagram of its own, or returns `None` without keys.
    pub fn seal(&self, packet: &PacketToSend) -> Option<Vec<u8>> {
        let mut bytes = vec![0; self.header_len(packet)];
        let length_at = self.write_header(packet, &mut bytes)?;
        let number_at = bytes.len() - NUMBER_LEN;
        let header_len = bytes.len();
        for frame in &packet.frames {
            bytes.extend_from_slice(frame);
        }
        // The sample for header protection starts four bytes after the start of the packet number,
        // which takes four bytes here. The tag alone is therefore long enough for the sample.
        let padded = packet.pad_to.saturating_sub(TAG_LEN);
        bytes.resize(bytes.len().max(padded), 0);
        bytes.resize(bytes.len() + TAG_LEN, 0);
        if packet.space != Space::Application {
            let len = bytes.len() - number_at;
            patch_length(&mut bytes, length_at, len);
        }
        let (key, header) = match packet.space {
            Space::Initial => (&self.initial.local.packet, &self.initial.local.header),
            Space::Handshake => {
                let keys = self.handshake.as_ref()?;
                (&keys.local.packet, &keys.local.header)
            }
            Space::Application => {
                let keys = &self.one_rtt.as_ref()?.send;
                (&keys.packet, &keys.header)
            }
        };
        key.seal_packet(packet.number, &mut bytes, header_len);
        header_protection::protect(header, &mut bytes, number_at, NUMBER_LEN);
        Some(bytes)
    }

    fn can_send(&self, space: Space) -> bool {
        match space {
            Space::Initial => !self.is_confirmed(),
            Space::Handshake => self.handshake.is_some() && !self.is_confirmed(),
            Space::Application => self.is_established(),
        }
    }

    /// Returns the ACK frame that is due, unless the hooks prevent it.
    fn ack_frame(&mut self, now: Time, space: Space) -> Option<Vec<u8>> {
        let index = super::index(space);
        if !std::mem::take(&mut self.numbers[index].ack_is_due) {
            return None;
        }
        let received = &self.numbers[index].received;
        let acknowledged = self.hooks.acknowledge(now, space, received)?;
        ack(&acknowledged)
    }

    /// Sends CRYPTO frames in packets of their own, and adds the last one to `frames`.
    fn take_crypto(&mut self, now: Time, space: Space, frames: &mut Vec<Vec<u8>>) {
        let index = super::index(space);
        let chunk = self.hooks.crypto_chunk();
        while self.numbers[index].crypto_sent < self.numbers[index].crypto_out.len() {
            if frames.iter().any(|frame| frame.len() > chunk / 2) {
                self.send_packet(now, space, std::mem::take(frames));
            }
            let numbers = &mut self.numbers[index];
            let start = numbers.crypto_sent;
            let end = numbers.crypto_out.len().min(start + chunk);
            numbers.crypto_sent = end;
            let offset = start as u64;
            let data = &numbers.crypto_out[start..end];
            frames.push(encode(&Frame::Crypto(Crypto { offset, data })));
        }
    }

    /// Sends queued frames in full packets, and adds the rest to `frames`.
    fn take_queued(&mut self, now: Time, frames: &mut Vec<Vec<u8>>) {
        let room = DATAGRAM - 1 - self.peer_id.len() - NUMBER_LEN - TAG_LEN;
        let mut len: usize = frames.iter().map(Vec::len).sum();
        for frame in std::mem::take(&mut self.frames) {
            if len + frame.len() > room && !frames.is_empty() {
                self.send_packet(now, Space::Application, std::mem::take(frames));
                len = 0;
            }
            len += frame.len();
            frames.push(frame);
        }
    }

    fn long_header(&self, packet: &PacketToSend) -> LongHeader<'_> {
        LongHeader {
            kind: match packet.space {
                Space::Initial => PacketKind::Initial,
                _ => PacketKind::Handshake,
            },
            version: VERSION_1,
            destination: packet.destination,
            source: self.local_id,
            token: &self.token,
        }
    }

    fn short_header(&self, packet: &PacketToSend) -> Option<ShortHeader> {
        Some(ShortHeader {
            destination: packet.destination,
            spin: false,
            key_phase: self.one_rtt.as_ref()?.send.phase,
        })
    }

    fn header_len(&self, packet: &PacketToSend) -> usize {
        NUMBER_LEN
            + match packet.space {
                Space::Application => 1 + packet.destination.len(),
                _ => self.long_header(packet).encoded_len(),
            }
    }

    /// Writes the header with its packet number, and returns the position of its Length field.
    fn write_header(&self, packet: &PacketToSend, bytes: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(bytes);
        let length_at = if packet.space == Space::Application {
            self.short_header(packet)?.encode(&mut writer, NUMBER_LEN);
            0
        } else {
            self.long_header(packet).encode(&mut writer, NUMBER_LEN)
        };
        packet_number::write(&mut writer, packet.number, NUMBER_LEN);
        Some(length_at)
    }
}

/// Encodes an ACK frame for these packet numbers, or returns `None` if there are none.
pub fn ack(ranges: &RangeSet) -> Option<Vec<u8>> {
    let mut bytes = vec![0; MAX_ACK];
    let mut writer = Writer::new(&mut bytes);
    let is_written = Ack::write(&mut writer, ranges, 0, None, usize::MAX);
    let len = writer.position();
    bytes.truncate(len);
    is_written.then_some(bytes)
}

/// The length of packet numbers in bytes: always the largest, which needs no acknowledgments.
pub(super) const NUMBER_LEN: usize = 4;

/// The largest ACK frame in bytes.
const MAX_ACK: usize = 1100;
