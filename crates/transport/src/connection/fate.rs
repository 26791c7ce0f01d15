//! What became of a sent frame: the one match from `SentFrame` to its owner.

use super::Connection;
use crate::space::SpaceId;
use crate::space::sent::SentFrame;

impl Connection {
    /// A frame arrived.
    #[inline]
    pub(crate) fn on_frame_acked(&mut self, space: SpaceId, frame: SentFrame) {
        match frame {
            SentFrame::Stream { .. }
            | SentFrame::ResetStream { .. }
            | SentFrame::StopSending { .. }
            | SentFrame::MaxData { .. }
            | SentFrame::MaxStreamData { .. }
            | SentFrame::MaxStreams { .. }
            | SentFrame::DataBlocked { .. }
            | SentFrame::StreamDataBlocked { .. }
            | SentFrame::StreamsBlocked { .. } => self.streams.on_frame_acked(frame),
            SentFrame::Ack { largest } => {
                if let Some(numbers) = self.spaces.get_mut(space) {
                    numbers.received.on_ack_acknowledged(largest);
                }
            }
            SentFrame::Crypto { offset, len } => {
                if let Some(numbers) = self.spaces.get_mut(space) {
                    numbers.crypto.on_acked(offset, len);
                }
            }
            SentFrame::NewConnectionId { .. } => self.cids.issued.on_frame_acked(frame),
            SentFrame::RetireConnectionId { .. } => self.cids.peer.on_frame_acked(frame),
            SentFrame::NewToken => self.handshake.tokens = Vec::new(),
            SentFrame::AckFrequency { sequence } => self.recovery.ack_request.on_acked(sequence),
            SentFrame::Datagrams { count } => self.datagrams.on_acked(count),
            SentFrame::TrackedDatagram { id } => self.datagrams.on_tracked_acked(id),
            SentFrame::MtuProbe { size, path, .. } => self.on_mtu_probe_acked(path, size),
            SentFrame::HandshakeDone => self.handshake.done_sent = None,
            SentFrame::Ping | SentFrame::PathProbe => {}
        }
    }

    /// A probe repeats a frame that may not be lost. Datagrams are never sent again, and it is too
    /// early to call them lost (RFC 9221 §5.2).
    pub(crate) fn on_frame_repeated(&mut self, space: SpaceId, frame: SentFrame) {
        if !frame.is_datagram() {
            self.on_frame_lost(space, frame);
        }
    }

    /// A frame is lost, or a probe repeats it: its owner sends it again, or what stands in its
    /// place today (RFC 9000 §13.3).
    pub(crate) fn on_frame_lost(&mut self, space: SpaceId, frame: SentFrame) {
        match frame {
            SentFrame::Stream { .. }
            | SentFrame::ResetStream { .. }
            | SentFrame::StopSending { .. }
            | SentFrame::MaxData { .. }
            | SentFrame::MaxStreamData { .. }
            | SentFrame::MaxStreams { .. }
            | SentFrame::DataBlocked { .. }
            | SentFrame::StreamDataBlocked { .. }
            | SentFrame::StreamsBlocked { .. } => self.streams.on_frame_lost(frame),
            SentFrame::Crypto { offset, len } => {
                if let Some(numbers) = self.spaces.get_mut(space) {
                    numbers.crypto.on_lost(offset, len);
                }
            }
            SentFrame::NewConnectionId { .. } => self.cids.issued.on_frame_lost(frame),
            SentFrame::RetireConnectionId { .. } => self.cids.peer.on_frame_lost(frame),
            SentFrame::HandshakeDone => self.handshake.send_done = true,
            SentFrame::NewToken => {
                self.handshake.send_tokens = !self.handshake.tokens.is_empty();
            }
            SentFrame::AckFrequency { sequence } => self.recovery.ack_request.on_lost(sequence),
            SentFrame::Datagrams { count } => self.datagrams.on_lost(count),
            SentFrame::TrackedDatagram { id } => self.datagrams.on_tracked_lost(id),
            SentFrame::MtuProbe { probe, path, .. } => self.on_mtu_probe_lost(path, probe),
            // A newer ACK says more, a PING has asked, a probe is made fresh.
            SentFrame::Ack { .. } | SentFrame::Ping | SentFrame::PathProbe => {}
        }
    }
}
