//! The datagram that ends a connection. RFC 9000 §10.2.3.

use courser_base::{Ecn, Time};

use super::Connection;
use super::close::Closing;
use super::state::State;
use crate::build::packet_builder::PacketBuilder;
use crate::build::transmit::{Transmit, TransmitBuffer};
use crate::space::SpaceId;
use crate::space::sent::FrameLists;

impl Connection {
    /// CONNECTION_CLOSE in every space whose keys the peer might have.
    pub(super) fn transmit_close(
        &mut self,
        now: Time,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        let mut closing = self.take_closing()?;
        let transmit = self.write_close(now, &closing, buffer);
        // What the amplification limit holds back leaves as soon as there is room.
        closing.wants_to_send = transmit.is_none();
        self.put_closing(closing);
        transmit
    }

    /// Takes what is to be said out of the state while it is being said.
    fn take_closing(&mut self) -> Option<Closing> {
        match std::mem::replace(&mut self.state, State::Drained) {
            State::Closing(closing) if closing.wants_to_send => Some(closing),
            State::Draining {
                until,
                answer: Some(closing),
            } => {
                self.state = State::Draining {
                    until,
                    answer: None,
                };
                Some(closing)
            }
            other => {
                self.state = other;
                None
            }
        }
    }

    fn put_closing(&mut self, closing: Closing) {
        if matches!(self.state, State::Drained) {
            self.state = State::Closing(closing);
        }
    }

    fn write_close(
        &mut self,
        now: Time,
        closing: &Closing,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        let limit = self.handshake_limit()?;
        let room = buffer.room(limit);
        let mut packets = [None; 3];
        let mut at = 0;
        for id in SpaceId::ALL {
            if !self.protection.has_keys(id) {
                continue;
            }
            let Some((number, number_len)) = self.recovery.next_number(id) else {
                continue;
            };
            let payload_start = at + self.header_len(id) + number_len;
            let frames_end = room.len().saturating_sub(courser_crypto::TAG_LEN);
            if frames_end < payload_start + 24 {
                break;
            }
            let mut lists = FrameLists::default();
            let mut packet = PacketBuilder::new(&mut room[payload_start..frames_end], &mut lists);
            closing.encode(id, packet.writer());
            packet.pad_to(4 - number_len);
            let (len, _) = packet.finish();
            let unsealed = self.unsealed(id, room, at, (number, number_len), len);
            at = unsealed.end();
            packets[id as usize] = Some(unsealed);
        }
        if at == 0 {
            return None;
        }
        self.pad_datagram(&mut packets, room);
        let mut len = 0;
        for packet in packets.iter().flatten() {
            self.record_unsealed(now, packet, room);
            self.seal(packet, room);
            self.recovery.on_close_sent(packet.id, packet.number);
            len = packet.end();
        }
        buffer.advance(len);
        let path = self.paths.active_mut();
        path.on_datagram_sent(len);
        let tuple = path.tuple;
        let ecn = Ecn::NotEct;
        let (destination, source) = (tuple.peer, tuple.local);
        Some(Transmit {
            destination,
            source,
            ecn,
            segment_size: None,
            len,
        })
    }
}
