//! Loss recovery while a packet is filled: its own frames, and the record of all frames.

use std::time::Duration;

use courser_wire::frame::Frame;

use super::LossRecovery;
use super::ack_request::AckRequest;
use super::path_recovery::PathRecovery;
use super::sent_spaces::SentSpaces;
use crate::build::packet_builder::PacketBuilder;
use crate::space::SpaceId;
use crate::space::sent::{FrameLists, SentFrame, SentFrames};

/// The frames of loss recovery in a packet that is being filled.
#[derive(Debug)]
pub(crate) struct Filling<'a> {
    spaces: &'a mut SentSpaces,
    ack_request: &'a mut AckRequest,
    path: &'a PathRecovery,
    /// Probe timeouts in a row.
    timeouts: u32,
}

impl LossRecovery {
    /// Returns the records of frames in sent packets, which a packet is built with, apart from the
    /// rest.
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

    /// Takes the record of the packet that was built.
    #[inline]
    pub(crate) fn take_record(&mut self) -> SentFrames {
        self.lists.take()
    }
}

impl Filling<'_> {
    /// The shortest round trip of the path in use.
    #[inline]
    pub(crate) fn min_rtt(&self) -> Duration {
        self.path.rtt().min()
    }

    /// The datagram size of the path in use.
    #[inline]
    pub(crate) fn mtu(&self) -> u16 {
        self.path.mtu()
    }

    /// Returns true if a frame of loss recovery waits for a 1-RTT packet.
    #[inline]
    pub(crate) fn has_frames_to_send(&self) -> bool {
        self.spaces.application.space.ping || self.ack_request.has_frames_to_send()
    }

    /// Returns true if a probe of the handshake has frames to send beside an ACK. `has_crypto` is true
    /// when CRYPTO data waits in the space.
    #[inline]
    pub(crate) fn is_handshake_probe(&self, id: SpaceId, has_crypto: bool) -> bool {
        let space = self.spaces.get(id).filter(|_| id != SpaceId::Application);
        space.is_some_and(|space| space.probes > 0 && (space.ping || has_crypto))
    }

    /// Asks for a PING in a space, unless an ack-eliciting packet is on its way: one open question
    /// is enough, and a peer that answers none must not make us ask on.
    pub(crate) fn ask_unless_waiting(&mut self, id: SpaceId) {
        if let Some(space) = self.spaces.get_mut(id)
            && space.ack_eliciting == 0
        {
            space.ping = true;
        }
    }

    /// Writes a PING that is due.
    ///
    /// A probe must not wait for the delay that the peer was granted
    /// (draft-ietf-quic-ack-frequency-12 §7). If it got no answer, the next one asks with a frame that
    /// every peer knows.
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
        ask(is_urgent && self.ack_request.is_offered(), packet);
        space.ping = false;
    }

    /// Writes an ACK_FREQUENCY frame that waits.
    #[inline]
    pub(crate) fn write_ack_frequency(&mut self, packet: &mut PacketBuilder<'_>) {
        self.ack_request.write_frames(packet);
    }

    /// Fills an MTU probe with PING and PADDING (RFC 9000 §14.4), or rather the frame that is
    /// answered without delay (draft-ietf-quic-ack-frequency-12 §8.3).
    pub(crate) fn write_size_probe(&self, probe: u32, size: u16, packet: &mut PacketBuilder<'_>) {
        ask(self.ack_request.is_offered(), packet);
        let path = self.path.key();
        packet.record(SentFrame::MtuProbe { probe, size, path });
        packet.pad_to(usize::from(size));
    }
}

/// Writes the frame that asks for an acknowledgement.
fn ask(is_urgent: bool, packet: &mut PacketBuilder<'_>) {
    let (frame, record) = if is_urgent {
        (Frame::ImmediateAck, SentFrame::ImmediateAck)
    } else {
        (Frame::Ping, SentFrame::Ping)
    };
    frame.encode(packet.writer());
    packet.record(record);
}
