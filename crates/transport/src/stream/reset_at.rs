//! Resets that deliver the beginning of a stream. draft-ietf-quic-reliable-stream-reset-10.

use courser_wire::StreamId;
use courser_wire::frame::ResetStreamAt;

use super::Streams;
use super::control::ControlFrame;
use super::event::ResetAtError;
use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;
use crate::space::sent::SentFrame;

impl Streams {
    /// Abandons sending, but delivers the first `reliable_size` bytes of the stream: as many of
    /// them as were written. The peer's application reads these and then the error code.
    ///
    /// A later call may reduce the size, down to 0 by [`Streams::reset`]. The code of the first
    /// call counts. [`StreamEvent::Finished`](super::StreamEvent::Finished) follows when the peer
    /// has received the reset and these bytes.
    ///
    /// # Errors
    ///
    /// [`ResetAtError::Unsupported`] when the peer does not accept RESET_STREAM_AT, and
    /// [`ResetAtError::ClosedStream`] when it has received everything or the stream was reset
    /// before.
    pub fn reset_at(
        &mut self,
        id: StreamId,
        code: u64,
        reliable_size: u64,
    ) -> Result<(), ResetAtError> {
        let key = self.sender(id)?;
        if !self.peer_accepts_reset_at {
            return Err(ResetAtError::Unsupported);
        }
        if reliable_size == 0 {
            return Ok(self.reset(id, code)?);
        }
        let state = self.table.at(key);
        let is_shorter = state
            .send
            .reset_at(code, reliable_size, &mut self.buffers)?;
        if !is_shorter {
            return Ok(());
        }
        self.queues.unschedule(key, self.table.at(key));
        self.schedule(key);
        let state = self.table.at(key);
        if state.send.unsent() == 0 {
            self.queues.withdraw(state, ControlFrame::Blocked);
        }
        self.request_reset_at(key);
        self.wake_writers();
        Ok(())
    }

    /// Requests RESET_STREAM_AT if it is due.
    pub(super) fn request_reset_at(&mut self, key: u32) {
        let state = self.table.at(key);
        if state.send.reset_at_to_send().is_some() {
            self.queues.request(key, state, ControlFrame::Reset);
        }
    }

    /// Writes RESET_STREAM_AT of a stream, if it is due.
    pub(super) fn write_reset_at(&mut self, key: u32, packet: &mut PacketBuilder<'_>) {
        let state = self.table.at(key);
        let id = state.id;
        if let Some((reset, reliable_size)) = state.send.reset_at_to_send() {
            ResetStreamAt {
                id,
                error_code: reset.code,
                final_size: reset.final_size,
                reliable_size,
            }
            .encode(packet.writer());
            packet.record(SentFrame::ResetStreamAt { id, reliable_size });
        }
    }

    /// Processes the acknowledgement of RESET_STREAM_AT.
    pub(super) fn on_reset_at_acked(&mut self, id: StreamId, reliable_size: u64) {
        if let Some(key) = self.table.find(id)
            && self.table.at(key).send.on_reset_at_acked(reliable_size)
        {
            self.on_sending_over(key);
        }
    }

    /// Frees the bytes above the reliable size of a stream whose sending part has ended.
    pub(super) fn discard_rest(&mut self, key: u32) {
        self.table.at(key).send.discard(&mut self.buffers);
        self.queues.unschedule(key, self.table.at(key));
    }

    /// Processes RESET_STREAM_AT: the peer abandons sending but delivers the beginning
    /// (draft-ietf-quic-reliable-stream-reset-10 §4, §5).
    ///
    /// # Errors
    ///
    /// FRAME_ENCODING_ERROR if we did not offer the extension or the reliable size is above the
    /// final size, STREAM_STATE_ERROR if the error code changes, and the errors of
    /// [`Streams::on_stream_frame`].
    pub fn on_reset_stream_at_frame(&mut self, frame: ResetStreamAt) -> Result<(), TransportError> {
        if !self.accepts_reset_at {
            let reason = "a frame of an extension that was not offered";
            return Err(TransportError::frame_encoding(reason));
        }
        if frame.reliable_size > frame.final_size {
            let (reliable, size) = (frame.reliable_size, frame.final_size);
            return Err(TransportError::frame_encoding(format!(
                "reliable size {reliable} exceeds final size {size}"
            )));
        }
        let Some(key) = self.receiving(frame.id)? else {
            return Ok(());
        };
        let (connection, part) = (&mut self.flow.receive, &mut self.table.at(key).receive);
        part.on_reset_at(self.now, frame, connection, &mut self.buffers)?;
        self.on_reset_received(key);
        Ok(())
    }
}
