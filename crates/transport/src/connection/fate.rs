//! The fate of sent frames: one match from `SentFrame` to its owner for each event.

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "a frame that has to be sent again must not be ignored"
)]

use courser_base::Time;
use courser_telemetry::Record;

use super::parts::Parts;
use crate::recovery::FrameOwners;
use crate::space::SpaceId;
use crate::space::sent::SentFrame;
use crate::stream::Span;

impl FrameOwners for Parts {
    #[inline]
    fn on_frame_acked(&mut self, space: SpaceId, frame: SentFrame) {
        let Self {
            streams,
            handshake,
            ids,
            datagrams,
            ..
        } = self;
        match frame {
            SentFrame::Stream {
                id,
                offset,
                len,
                fin,
            } => {
                let len = len.into();
                streams.on_stream_acked(id, Span { offset, len, fin });
            }
            SentFrame::ResetStream { id } => streams.on_reset_stream_acked(id),
            SentFrame::ResetStreamAt { id, reliable_size } => {
                streams.on_reset_stream_at_acked(id, reliable_size);
            }
            SentFrame::StopSending { id } => streams.on_stop_sending_acked(id),
            SentFrame::MaxData { limit } => streams.on_max_data_acked(limit),
            SentFrame::MaxStreamData { id, limit } => streams.on_max_stream_data_acked(id, limit),
            SentFrame::MaxStreams { direction, limit } => {
                streams.on_max_streams_acked(direction, limit);
            }
            SentFrame::DataBlocked { limit } => streams.on_data_blocked_acked(limit),
            SentFrame::StreamDataBlocked { id, limit } => {
                streams.on_stream_data_blocked_acked(id, limit);
            }
            SentFrame::StreamsBlocked { direction, limit } => {
                streams.on_streams_blocked_acked(direction, limit);
            }
            SentFrame::Ack { largest } => self.acknowledger.on_ack_acknowledged(space, largest),
            SentFrame::Crypto { offset, len } => handshake.on_crypto_acked(space, offset, len),
            SentFrame::NewToken => handshake.on_new_token_acked(),
            SentFrame::HandshakeDone => handshake.on_handshake_done_acked(),
            SentFrame::NewConnectionId { sequence } => ids.on_new_connection_id_acked(sequence),
            SentFrame::RetireConnectionId { sequence } => {
                ids.on_retire_connection_id_acked(sequence);
            }
            SentFrame::PathAck { .. }
            | SentFrame::PathAbandon { .. }
            | SentFrame::PathStatus { .. }
            | SentFrame::PathNewConnectionId { .. }
            | SentFrame::PathRetireConnectionId { .. }
            | SentFrame::MaxPathId { .. } => {
                if let Some(multipath) = &mut self.multipath {
                    multipath.on_acked(frame, ids, &mut self.acknowledger);
                }
            }
            SentFrame::AddAddress { .. }
            | SentFrame::RemoveAddress { .. }
            | SentFrame::ReachOut { .. } => {
                self.on_candidate_frame_acked(frame);
            }
            SentFrame::Datagrams { count } => datagrams.on_acked(count),
            SentFrame::TrackedDatagram { id } => datagrams.on_tracked_acked(id),
            SentFrame::MeasuredPing { request, sent } => self.pings.on_acked(request, sent),
            // Loss recovery owns the last two.
            SentFrame::Ping
            | SentFrame::ImmediateAck
            | SentFrame::PathsBlocked
            | SentFrame::PathCidsBlocked
            | SentFrame::ObservedAddress { .. }
            | SentFrame::PathChallenge
            | SentFrame::PathResponse
            | SentFrame::MtuProbe { .. }
            | SentFrame::AckFrequency { .. } => {}
        }
    }

    fn on_frame_lost(&mut self, space: SpaceId, frame: SentFrame) {
        let Self {
            streams,
            handshake,
            ids,
            datagrams,
            ..
        } = self;
        match frame {
            SentFrame::Stream {
                id,
                offset,
                len,
                fin,
            } => {
                let len = len.into();
                streams.on_stream_lost(id, Span { offset, len, fin });
            }
            SentFrame::ResetStream { id } => streams.on_reset_stream_lost(id),
            SentFrame::ResetStreamAt { id, .. } => streams.on_reset_stream_at_lost(id),
            SentFrame::StopSending { id } => streams.on_stop_sending_lost(id),
            SentFrame::MaxData { .. } => streams.on_max_data_lost(),
            SentFrame::MaxStreamData { id, .. } => streams.on_max_stream_data_lost(id),
            SentFrame::MaxStreams { direction, .. } => streams.on_max_streams_lost(direction),
            SentFrame::DataBlocked { .. } => streams.on_data_blocked_lost(),
            SentFrame::StreamDataBlocked { id, .. } => streams.on_stream_data_blocked_lost(id),
            SentFrame::StreamsBlocked { direction, .. } => {
                streams.on_streams_blocked_lost(direction);
            }
            SentFrame::Crypto { offset, len } => handshake.on_crypto_lost(space, offset, len),
            SentFrame::NewToken => handshake.on_new_token_lost(),
            SentFrame::HandshakeDone => handshake.on_handshake_done_lost(),
            SentFrame::NewConnectionId { sequence } => ids.on_new_connection_id_lost(sequence),
            SentFrame::RetireConnectionId { sequence } => {
                ids.on_retire_connection_id_lost(sequence);
            }
            SentFrame::PathAbandon { .. }
            | SentFrame::PathStatus { .. }
            | SentFrame::PathNewConnectionId { .. }
            | SentFrame::PathRetireConnectionId { .. }
            | SentFrame::MaxPathId { .. } => {
                if let Some(multipath) = &mut self.multipath {
                    multipath.on_lost(frame, ids);
                }
            }
            SentFrame::PathAck { .. } | SentFrame::PathsBlocked | SentFrame::PathCidsBlocked => {}
            SentFrame::ObservedAddress { path, sequence } => {
                if let Some(observed) = &mut self.observed {
                    observed.on_lost(path, sequence);
                }
            }
            SentFrame::AddAddress { .. }
            | SentFrame::RemoveAddress { .. }
            | SentFrame::ReachOut { .. } => {
                if let Some(traversal) = self.traversal_mut() {
                    traversal.on_lost(frame);
                }
            }
            SentFrame::Datagrams { count } => datagrams.on_lost(count),
            SentFrame::TrackedDatagram { id } => datagrams.on_tracked_lost(id),
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
