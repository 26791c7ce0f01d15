//! Opening and processing of received packets.

use courser_base::Time;
use courser_crypto::{Space, header_protection};
use courser_wire::packet::{self, Packet, short};
use courser_wire::{ConnectionClose, Frame, Frames, PacketKind, PathResponse, packet_number};

use super::Connection;
use super::seen::Close;
use crate::encode::encode;
use crate::hooks::Verdict;

impl Connection {
    /// Processes a datagram. Packets that cannot be opened are dropped.
    pub fn receive(&mut self, now: Time, datagram: &mut [u8]) {
        self.seen.datagrams += 1;
        let mut start = 0;
        while let Ok(packet) = packet::decode(datagram, start, self.local_id.len()) {
            if packet.kind == PacketKind::Retry {
                self.on_retry(datagram);
                return;
            }
            let bytes = &mut datagram[start..packet.end];
            self.receive_packet(now, bytes, &packet, start);
            start = packet.end;
            if start >= datagram.len() {
                return;
            }
        }
    }

    fn receive_packet(&mut self, now: Time, bytes: &mut [u8], packet: &Packet, start: usize) {
        let Some(space) = self.space_of(packet.kind) else {
            return;
        };
        let Some((number, payload)) = self.open(space, bytes, packet.packet_number_offset - start)
        else {
            return;
        };
        if packet.kind == PacketKind::Initial && self.side.is_client() && !self.is_answered {
            self.peer_id = packet.source;
        }
        self.is_answered = true;
        self.seen.packets += u64::from(space == Space::Application);
        let payload = payload.to_vec();
        let mut is_ack_eliciting = false;
        for frame in Frames::new(&payload) {
            let Ok(frame) = frame else { break };
            is_ack_eliciting |= frame.is_ack_eliciting();
            if self.hooks.on_frame(now, space, &frame) == Verdict::Process {
                self.on_frame(space, &frame);
            }
        }
        self.numbers_mut(space)
            .on_received(number, is_ack_eliciting);
    }

    /// Opens a packet and returns its number and payload, or `None` if it is not authentic.
    fn open<'b>(
        &mut self,
        space: Space,
        packet: &'b mut [u8],
        number_offset: usize,
    ) -> Option<(u64, &'b [u8])> {
        let header_key = match space {
            Space::Initial => &self.initial.peer.header,
            Space::Handshake => &self.handshake.as_ref()?.peer.header,
            Space::Application => self.one_rtt.as_ref()?.peer_header(),
        };
        let (len, truncated) = header_protection::unprotect(header_key, packet, number_offset)?;
        let next = self.numbers(space).received.max().map_or(0, |max| max + 1);
        let number = packet_number::expand(truncated, len, next);
        let (header, payload) = packet.split_at_mut(number_offset + len);
        let opened = match space {
            Space::Initial => self
                .initial
                .peer
                .packet
                .open(number, header, payload)
                .ok()?,
            Space::Handshake => {
                let keys = self.handshake.as_ref()?;
                keys.peer.packet.open(number, header, payload).ok()?
            }
            Space::Application => {
                let phase = short::key_phase_bit(header[0]);
                let keys = self.one_rtt.as_mut()?;
                keys.open(number, phase, header, payload)?
            }
        };
        Some((number, &payload[..opened]))
    }

    fn on_frame(&mut self, space: Space, frame: &Frame<'_>) {
        if space == Space::Application {
            self.seen.on_frame(frame);
            if let Frame::Stream(stream) = frame
                && self.hooks.keeps_streams()
            {
                self.seen.keep(stream);
            }
        }
        match frame {
            Frame::Crypto(crypto) => self.on_crypto(space, crypto.offset, crypto.data),
            Frame::PathChallenge(challenge) => {
                let data = challenge.data;
                self.frames
                    .push(encode(&Frame::PathResponse(PathResponse { data })));
            }
            Frame::ConnectionClose(close) => self.on_close(close),
            _ => {}
        }
    }

    fn on_close(&mut self, close: &ConnectionClose<'_>) {
        self.seen.close.get_or_insert_with(|| Close {
            kind: close.kind,
            reason: String::from_utf8_lossy(close.reason).into_owned(),
        });
        self.repeat_at = None;
    }
}
