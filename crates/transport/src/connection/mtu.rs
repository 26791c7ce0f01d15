//! The datagram size of the path in use. RFC 9000 §14.

use std::net::IpAddr;

use courser_base::{Ecn, Time};
use courser_wire::TransportErrorCode;
use courser_wire::frame::Frame;

use super::Connection;
use super::fill::Content;
use crate::build::packet_builder::PacketBuilder;
use crate::build::transmit::{Transmit, TransmitBuffer};
use crate::error::TransportError;
use crate::space::SpaceId;
use crate::space::sent::SentFrame;

impl Connection {
    /// Sets the MTU of the interface towards the peer in bytes of an IP packet. It is the first
    /// size that the search tries, and the largest. Without it the search begins at Ethernet's.
    /// Best called as soon as the connection exists, and again after
    /// [`Event::PathChanged`](super::Event::PathChanged).
    pub fn set_interface_mtu(&mut self, mtu: u32) {
        let size = self.payload_of(mtu);
        self.recovery.set_interface_mtu(size);
    }

    /// Returns the UDP payload that fits IP packets of `mtu` bytes to the peer.
    pub(super) fn payload_of(&self, mtu: u32) -> u16 {
        let headers = match self.paths.active().tuple.peer.ip().to_canonical() {
            IpAddr::V4(_) => IPV4_HEADERS,
            IpAddr::V6(_) => IPV6_HEADERS,
        };
        u16::try_from(mtu.saturating_sub(headers)).unwrap_or(u16::MAX)
    }

    /// Builds a lone datagram that is larger than today's, when it is time for one.
    pub(super) fn transmit_mtu_probe(
        &mut self,
        now: Time,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        let is_validated = self.paths.active().amplification.is_validated();
        let has_data = self.streams.wants_to_send();
        let size = self.recovery.next_size_probe(now, is_validated, has_data)?;
        if !self.keys_are_good(now) {
            return self.transmit_close(now, buffer);
        }
        let probe = self.recovery.begin_size_probe(size);
        let mut lists = self.recovery.take_lists();
        let room = buffer.room(usize::from(size));
        let built = self.build_short(now, room, &mut lists, Content::MtuProbe(probe, size));
        self.recovery.put_lists(lists);
        let built = built?;
        self.on_packet_sent(now, SpaceId::Application, &built, Ecn::NotEct);
        buffer.advance(built.len);
        self.paths.active_mut().on_datagram_sent(built.len);
        self.recovery.on_size_probe_sent(now, &built);
        Some(self.transmit_of(buffer, 1, built.len, Ecn::NotEct))
    }

    /// Writes PING and PADDING (RFC 9000 §14.4), or rather the frame that is answered without
    /// delay (draft-ietf-quic-ack-frequency-12 §8.3).
    pub(super) fn fill_mtu_probe(&self, probe: u32, size: u16, packet: &mut PacketBuilder<'_>) {
        let frame = if self.recovery.may_ask_for_acks() {
            Frame::ImmediateAck
        } else {
            Frame::Ping
        };
        frame.encode(packet.writer());
        let path = self.recovery.route().id();
        packet.record(SentFrame::MtuProbe { probe, size, path });
        packet.pad_to(usize::from(size));
    }

    /// Closes a connection whose path does not carry the smallest datagrams of QUIC: only probes
    /// and this may be sent on such a path (RFC 9000 §14.2).
    pub(super) fn on_path_too_small(&mut self, now: Time) {
        if self.state.is_confirmed() {
            let reason = "the path does not carry datagrams of 1200 bytes";
            let code = TransportErrorCode::NO_VIABLE_PATH;
            self.fail(now, TransportError::new(code, reason));
        }
    }
}

/// IPv4 header without options, and UDP's.
const IPV4_HEADERS: u32 = 20 + 8;
/// IPv6 header without extensions, and UDP's.
const IPV6_HEADERS: u32 = 40 + 8;
