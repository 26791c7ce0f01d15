//! Loss recovery while a packet is built: its own frames, and the record of all frames.

use std::time::Duration;

use courser_wire::frame::Frame;

use super::LossRecovery;
use super::ack_request::AckRequest;
use super::path_recovery::PathRecovery;
use super::sent_spaces::SentSpaces;
use crate::build::packet_builder::PacketBuilder;
use crate::space::SpaceId;
use crate::space::sent::{FrameLists, SentFrame, SentFrames};

/// The frames of loss recovery in a packet that is being built.
#[derive(Debug)]
pub(crate) struct Filling<'a> {
    spaces: &'a mut SentSpaces,
    ack_request: &'a mut AckRequest,
    path: &'a PathRecovery,
    /// Probe timeouts in a row.
    timeouts: u32,
}

impl LossRecovery {
    /// Returns the records of frames, to which a packet adds while it is built, and the rest of loss recovery.
    #[inline]
    pub(crate) fn filling(&mut self) -> (&mut FrameLists, Filling<'_>) {
        let filling = Filling {
            spaces: &mut self.spaces,
            ack_request: &mut self.ack_request,
            path: self.paths.active(),
            timeouts: self.probe_timer.count(),
        };
        (&mut self.lists, filling)
    }

    /// Returns the record of the packet that was built.
    #[inline]
    pub(crate) fn take_record(&mut self) -> SentFrames {
        self.lists.take()
    }
}

impl Filling<'_> {
    /// Returns the shortest round trip of the path in use.
    #[inline]
    pub(crate) fn min_rtt(&self) -> Duration {
        self.path.rtt().min()
    }

    /// Returns the smoothed round trip of the path in use.
    #[inline]
    pub(crate) fn smoothed_rtt(&self) -> Duration {
        self.path.rtt().smoothed()
    }

    /// Returns the datagram size of the path in use.
    #[inline]
    pub(crate) fn mtu(&self) -> u16 {
        self.path.mtu()
    }

    /// Returns true if a frame of loss recovery is due in a 1-RTT packet.
    #[inline]
    pub(crate) fn has_frames_to_send(&self) -> bool {
        self.spaces.application.space.ping || self.ack_request.has_frames_to_send()
    }

    /// Returns true if a probe of the handshake has other frames to send than an ACK. `has_crypto` is true if
    /// CRYPTO data of the space is unsent or lost.
    #[inline]
    pub(crate) fn is_handshake_probe(&self, id: SpaceId, has_crypto: bool) -> bool {
        let space = self.spaces.get(id).filter(|_| id != SpaceId::Application);
        space.is_some_and(|space| space.probes > 0 && (space.ping || has_crypto))
    }

    /// Requests a PING in a space, unless an ack-eliciting packet is in flight: one is enough, and a peer that
    /// acknowledges none must not make us send more.
    pub(crate) fn request_ping_if_none_in_flight(&mut self, id: SpaceId) {
        if let Some(space) = self.spaces.get_mut(id)
            && space.ack_eliciting == 0
        {
            space.ping = true;
        }
    }

    /// Writes a PING that is due.
    ///
    /// A probe must not wait for the delay that the peer was granted
    /// (draft-ietf-quic-ack-frequency-12 §7). If it was not acknowledged, the next probe contains a PING,
    /// which every peer supports.
    #[inline]
    pub(crate) fn write_ping(&mut self, id: SpaceId, packet: &mut PacketBuilder<'_>) {
        let Some(space) = self.spaces.get_mut(id) else {
            return;
        };
        if !space.ping || packet.remaining() < 1 {
            return;
        }
        let is_first = self.timeouts < 2;
        let is_urgent = space.probes > 0 && id == SpaceId::Application && is_first;
        write_ack_request(is_urgent && self.ack_request.is_offered(), packet);
        space.ping = false;
    }

    /// Writes an ACK_FREQUENCY frame that is due.
    #[inline]
    pub(crate) fn write_ack_frequency(&mut self, packet: &mut PacketBuilder<'_>) {
        self.ack_request.write_frames(packet);
    }

    /// Fills an MTU probe with PING and PADDING (RFC 9000 §14.4). If the peer accepts it, IMMEDIATE_ACK replaces
    /// PING (draft-ietf-quic-ack-frequency-12 §8.3).
    pub(crate) fn write_size_probe(&self, probe: u32, size: u16, packet: &mut PacketBuilder<'_>) {
        write_ack_request(self.ack_request.is_offered(), packet);
        let path = self.path.key();
        packet.record(SentFrame::MtuProbe { probe, size, path });
        packet.pad_to(usize::from(size));
    }
}

/// Writes IMMEDIATE_ACK if `is_urgent`, otherwise PING.
fn write_ack_request(is_urgent: bool, packet: &mut PacketBuilder<'_>) {
    let (frame, record) = if is_urgent {
        (Frame::ImmediateAck, SentFrame::ImmediateAck)
    } else {
        (Frame::Ping, SentFrame::Ping)
    };
    frame.encode(packet.writer());
    packet.record(record);
}
