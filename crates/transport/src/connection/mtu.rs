//! The datagram size of a path: probes out, and what becomes of them. RFC 9000 §14.3, §14.4.

use std::net::IpAddr;

use courser_base::{Ecn, Time};
use courser_recovery::{Controller, LostPacket};
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
    /// Tells how large the IP packets may be that the interface towards the peer takes, which is
    /// the first size that the search tries and the largest. Without it the search begins at
    /// Ethernet's. Best told as soon as the connection exists, and again after
    /// [`Event::PathChanged`](super::Event::PathChanged).
    pub fn set_interface_mtu(&mut self, mtu: u32) {
        let size = self.payload_of(mtu);
        let path = self.paths.active_mut();
        path.search.set_interface_mtu(size);
        path.follow_search();
    }

    /// UDP payload that fits IP packets of `mtu` bytes to the peer.
    pub(super) fn payload_of(&self, mtu: u32) -> u16 {
        let headers = match self.paths.active().tuple.peer.ip().to_canonical() {
            IpAddr::V4(_) => IPV4_HEADERS,
            IpAddr::V6(_) => IPV6_HEADERS,
        };
        u16::try_from(mtu.saturating_sub(headers)).unwrap_or(u16::MAX)
    }

    /// A lone datagram that is larger than those of today, when it is time for one.
    ///
    /// It leaves only where its loss is of no concern: after the handshake, on a proven path, and
    /// with room in the window. At the beginning of slow start data comes first, see
    /// [`HURRIED_WINDOW`].
    pub(super) fn transmit_mtu_probe(
        &mut self,
        now: Time,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        if !self.paths.active().search.wants_probe() || self.is_hurried() {
            return None;
        }
        let path = self.paths.active_mut();
        let space = &self.spaces.application;
        let may_send = self.state.is_confirmed()
            && path.amplification.is_validated()
            && space.probes == 0
            && !space.sent.is_full()
            && path.search.can_afford_probe(path.delivery.delivered())
            && self.recovery.paced_until.is_none();
        if !may_send {
            return None;
        }
        let size = path.search.next_probe(now, path.congestion_room())?;
        if !self.keys_are_good(now) {
            return self.transmit_close(now, buffer);
        }
        let probe = self.paths.active_mut().search.on_probe_sent(size);
        let mut lists = std::mem::take(&mut self.recovery.lists);
        let room = buffer.room(usize::from(size));
        let built = self.build_short(now, room, &mut lists, Content::MtuProbe(probe, size));
        self.recovery.lists = lists;
        let built = built?;
        self.on_packet_sent(now, SpaceId::Application, &built, Ecn::NotEct);
        buffer.advance(built.len);
        let path = self.paths.active_mut();
        path.on_datagram_sent(built.len);
        let bytes = built.len as u64;
        path.congestion
            .on_sent(now, bytes, built.number, path.bytes_in_flight);
        path.pacer.on_sent(bytes);
        Some(self.transmit_of(buffer, 1, built.len, Ecn::NotEct))
    }

    /// Data waits, and the window has yet to grow from a few datagrams to what the path holds.
    fn is_hurried(&self) -> bool {
        let path = self.paths.active();
        let few = path.congestion.window() < HURRIED_WINDOW;
        few && path.congestion.in_slow_start() && self.streams.wants_to_send()
    }

    /// True while a probe waits for data in flight to be acknowledged. Only where it is a small
    /// part of the window, so that the pause is a small part of a round trip. What a controller
    /// holds back itself, in recovery, does not count: nothing in flight might ever free it.
    pub(super) fn makes_room_for_probe(&self) -> bool {
        let path = self.paths.active();
        let awaited = path.search.awaited_room();
        let window = path.congestion.window();
        let is_small = 4 * awaited <= window;
        let is_missing = awaited > window.saturating_sub(path.bytes_in_flight);
        is_missing && is_small && !self.is_hurried()
    }

    /// PING and PADDING (RFC 9000 §14.4), or rather the frame that is answered without delay
    /// (draft-ietf-quic-ack-frequency-12 §8.3).
    pub(super) fn fill_mtu_probe(&self, probe: u32, size: u16, packet: &mut PacketBuilder<'_>) {
        let frame = if self.recovery.ack_request.is_offered() {
            Frame::ImmediateAck
        } else {
            Frame::Ping
        };
        frame.encode(packet.writer());
        let path = self.paths.active().id;
        packet.record(SentFrame::MtuProbe { probe, size, path });
        packet.pad_to(usize::from(size));
    }

    /// A probe arrived: datagrams may be as large from now on.
    pub(super) fn on_mtu_probe_acked(&mut self, path: u32, size: u16) {
        if let Some(path) = self.paths.by_id(path)
            && path.search.on_probe_acked(size)
        {
            path.follow_search();
        }
    }

    /// A probe was lost, or nobody has acknowledged it for long.
    pub(super) fn on_mtu_probe_lost(&mut self, path: u32, probe: u32) {
        if let Some(path) = self.paths.by_id(path) {
            path.search.on_probe_lost(probe);
        }
    }

    /// Packets other than probes were lost on the path in use: does it still carry their size?
    pub(super) fn on_large_packets_lost(&mut self, now: Time, packets: &[LostPacket]) {
        let Some(largest) = packets.iter().max_by_key(|packet| packet.bytes) else {
            return;
        };
        let size = u16::try_from(largest.bytes).unwrap_or(u16::MAX);
        let newest = packets.iter().map(|packet| packet.sent).max();
        let path = self.paths.active_mut();
        if path
            .search
            .on_lost(now, size, newest.unwrap_or(largest.sent))
        {
            path.follow_search();
        }
        if path.search.is_error() && self.state.is_confirmed() {
            // RFC 9000 §14.2: nothing but probes and this may be sent on such a path.
            let reason = "the path does not carry datagrams of 1200 bytes";
            let code = TransportErrorCode::NO_VIABLE_PATH;
            self.fail(now, TransportError::new(code, reason));
        }
    }

    /// A probe timeout: after several in a row smaller packets are tried.
    pub(super) fn on_silence(&mut self) {
        let count = self.recovery.pto.count();
        let path = self.paths.active_mut();
        if path.search.on_probe_timeout(count) {
            path.follow_search();
        }
    }
}

/// Bytes of a window, 32 datagrams of 1200, below which data that waits in slow start comes before
/// probes. What a probe
/// takes there is taken from the next round too, and again from the one after it: of the ten datagrams
/// of an initial window each costs a transfer a tenth of a round trip, and datagrams larger by a fifth
/// win back two percent of the bytes.
const HURRIED_WINDOW: u64 = 32 * 1200;

/// IPv4 header without options, and UDP's.
const IPV4_HEADERS: u32 = 20 + 8;
/// IPv6 header without extensions, and UDP's.
const IPV6_HEADERS: u32 = 40 + 8;
