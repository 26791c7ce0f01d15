//! Fates of the frames that streams send, as a connection reports them.

use super::*;

/// Reports that a frame was acknowledged.
pub(super) fn on_acked(streams: &mut Streams, frame: SentFrame) {
    use SentFrame as F;
    match frame {
        F::Stream {
            id,
            offset,
            len,
            fin,
        } => {
            let len = len.into();
            streams.on_stream_acked(id, Span { offset, len, fin });
        }
        F::ResetStream { id } => streams.on_reset_stream_acked(id),
        F::ResetStreamAt { id, reliable_size } => {
            streams.on_reset_stream_at_acked(id, reliable_size);
        }
        F::StopSending { id } => streams.on_stop_sending_acked(id),
        F::MaxData { limit } => streams.on_max_data_acked(limit),
        F::MaxStreamData { id, limit } => streams.on_max_stream_data_acked(id, limit),
        F::MaxStreams { direction, limit } => streams.on_max_streams_acked(direction, limit),
        F::DataBlocked { limit } => streams.on_data_blocked_acked(limit),
        F::StreamDataBlocked { id, limit } => streams.on_stream_data_blocked_acked(id, limit),
        F::StreamsBlocked { direction, limit } => {
            streams.on_streams_blocked_acked(direction, limit);
        }
        other => panic!("{other:?} is not a frame of streams"),
    }
}

/// Reports that a frame was lost.
pub(super) fn on_lost(streams: &mut Streams, frame: SentFrame) {
    use SentFrame as F;
    match frame {
        F::Stream {
            id,
            offset,
            len,
            fin,
        } => {
            let len = len.into();
            streams.on_stream_lost(id, Span { offset, len, fin });
        }
        F::ResetStream { id } => streams.on_reset_stream_lost(id),
        F::ResetStreamAt { id, .. } => streams.on_reset_stream_at_lost(id),
        F::StopSending { id } => streams.on_stop_sending_lost(id),
        F::MaxData { .. } => streams.on_max_data_lost(),
        F::MaxStreamData { id, .. } => streams.on_max_stream_data_lost(id),
        F::MaxStreams { direction, .. } => streams.on_max_streams_lost(direction),
        F::DataBlocked { .. } => streams.on_data_blocked_lost(),
        F::StreamDataBlocked { id, .. } => streams.on_stream_data_blocked_lost(id),
        F::StreamsBlocked { direction, .. } => streams.on_streams_blocked_lost(direction),
        other => panic!("{other:?} is not a frame of streams"),
    }
}
