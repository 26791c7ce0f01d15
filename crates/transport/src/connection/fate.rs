//! Reports the fate of sent frames to their owners, in the only matches over `SentFrame`.

use courser_base::Time;
use courser_telemetry::Record;

use super::parts::Parts;
use crate::recovery::FrameOwners;
use crate::space::SpaceId;
use crate::space::sent::SentFrame;

impl FrameOwners for Parts {
    #[inline]
    fn on_frame_acked(&mut self, space: SpaceId, frame: SentFrame) {
        match frame {
            SentFrame::Stream { .. }
            | SentFrame::ResetStream { .. }
            | SentFrame::ResetStreamAt { .. }
            | SentFrame::StopSending { .. }
            | SentFrame::MaxData { .. }
            | SentFrame::MaxStreamData { .. }
            | SentFrame::MaxStreams { .. }
            | SentFrame::DataBlocked { .. }
            | SentFrame::StreamDataBlocked { .. }
            | SentFrame::StreamsBlocked { .. } => self.streams.on_frame_acked(frame),
            SentFrame::Ack { largest } => {
                self.acknowledger.on_ack_acknowledged(space, largest);
            }
            SentFrame::Crypto { .. } | SentFrame::NewToken | SentFrame::HandshakeDone => {
                self.handshake.on_frame_acked(space, frame);
            }
            SentFrame::NewConnectionId { .. } | SentFrame::RetireConnectionId { .. } => {
                self.ids.on_frame_acked(frame);
            }
            SentFrame::Datagrams { count } => self.datagrams.on_acked(count),
            SentFrame::TrackedDatagram { id } => self.datagrams.on_tracked_acked(id),
            SentFrame::MeasuredPing { request, sent } => self.pings.on_acked(request, sent),
            SentFrame::Ping
            | SentFrame::ImmediateAck
            | SentFrame::PathChallenge
            | SentFrame::PathResponse => {}
            // Loss recovery owns these.
            SentFrame::MtuProbe { .. } | SentFrame::AckFrequency { .. } => {}
        }
    }

    fn on_frame_lost(&mut self, space: SpaceId, frame: SentFrame) {
        match frame {
            SentFrame::Stream { .. }
            | SentFrame::ResetStream { .. }
            | SentFrame::ResetStreamAt { .. }
            | SentFrame::StopSending { .. }
            | SentFrame::MaxData { .. }
            | SentFrame::MaxStreamData { .. }
            | SentFrame::MaxStreams { .. }
            | SentFrame::DataBlocked { .. }
            | SentFrame::StreamDataBlocked { .. }
            | SentFrame::StreamsBlocked { .. } => self.streams.on_frame_lost(frame),
            SentFrame::Crypto { .. } | SentFrame::NewToken | SentFrame::HandshakeDone => {
                self.handshake.on_frame_lost(space, frame);
            }
            SentFrame::NewConnectionId { .. } | SentFrame::RetireConnectionId { .. } => {
                self.ids.on_frame_lost(frame);
            }
            SentFrame::Datagrams { count } => self.datagrams.on_lost(count),
            SentFrame::TrackedDatagram { id } => self.datagrams.on_tracked_lost(id),
            SentFrame::MeasuredPing { request, .. } => self.pings.on_lost(request),
            // A newer ACK contains more, a lost PING need not be repeated, and a path probe needs new data.
            SentFrame::Ack { .. }
            | SentFrame::Ping
            | SentFrame::ImmediateAck
            | SentFrame::PathChallenge
            | SentFrame::PathResponse => {}
            // Loss recovery owns these.
            SentFrame::MtuProbe { .. } | SentFrame::AckFrequency { .. } => {}
        }
    }

    fn has_new_data(&self) -> bool {
        self.streams.has_stream_data() || self.datagrams.has_frames_to_send()
    }

    fn has_crypto(&self, space: SpaceId) -> bool {
        self.handshake.has_crypto_to_send(space)
    }

    #[inline]
    fn record(&mut self, now: Time, record: impl FnOnce() -> Record) {
        self.trace.record(now, record);
    }
}
