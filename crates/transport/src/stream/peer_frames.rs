//! Processing of the peer's stream frames. RFC 9000 §19.4 to §19.14,
//! draft-ietf-quic-reliable-stream-reset-10.

use std::time::Duration;

use courser_base::Time;
use courser_wire::frame::{
    DataBlocked, MaxData, MaxStreamData, MaxStreams, ResetStream, ResetStreamAt, StopSending,
    Stream, StreamDataBlocked, StreamsBlocked,
};
use courser_wire::{Direction, MAX_STREAMS, StreamId};

use super::Streams;
use super::control::ControlFrame;
use super::event::{Stored, StreamEvent, StreamOutcome};
use super::limits::Use;
use crate::error::TransportError;

impl Streams {
    /// Processes STREAM: stores bytes of a stream, copied once (RFC 9000 §19.8).
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR, STREAM_LIMIT_ERROR, FINAL_SIZE_ERROR, FLOW_CONTROL_ERROR or
    /// FRAME_ENCODING_ERROR when the peer broke a rule.
    #[inline]
    pub fn on_stream_frame(
        &mut self,
        now: Time,
        frame: &Stream<'_>,
    ) -> Result<StreamOutcome, TransportError> {
        self.now = now;
        let Some(key) = self.receiving(frame.id)? else {
            return Ok(StreamOutcome::Known);
        };
        let connection = &mut self.flow.receive;
        let received = connection.received();
        let state = self.table.at(key);
        let progress = state.receive.progress();
        let stored = state
            .receive
            .on_stream(now, frame, connection, &mut self.buffers)?;
        self.counters.data_received += connection.received() - received;
        let outcome = match stored {
            Stored::Refused => StreamOutcome::Refused,
            Stored::Kept if state.receive.progress() != progress => StreamOutcome::Fresh,
            Stored::Kept => StreamOutcome::Known,
        };
        self.counters.refused += u64::from(outcome == StreamOutcome::Refused);
        let is_awaited = state.receive.awaits_content();
        if state.receive.is_credit_due() {
            self.queues.request(key, state, ControlFrame::Credit);
        } else if frame.fin {
            self.queues.withdraw(state, ControlFrame::Credit);
        }
        self.record_content(frame.id, is_awaited);
        self.on_received(key);
        Ok(outcome)
    }

    /// Processes RESET_STREAM: the peer abandons sending (RFC 9000 §19.4).
    ///
    /// # Errors
    ///
    /// The errors of [`Streams::on_stream_frame`].
    pub fn on_reset_stream_frame(&mut self, frame: ResetStream) -> Result<(), TransportError> {
        let Some(key) = self.receiving(frame.id)? else {
            return Ok(());
        };
        let (connection, part) = (&mut self.flow.receive, &mut self.table.at(key).receive);
        part.on_reset(self.now, frame, connection, &mut self.buffers)?;
        self.on_reset_received(key);
        Ok(())
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

    /// Withdraws the frames that a reset of the peer makes useless, and reports it to the reader.
    fn on_reset_received(&mut self, key: u32) {
        let state = self.table.at(key);
        let (id, is_awaited) = (state.id, state.receive.awaits_content());
        if state.receive.stop_to_send().is_none() {
            self.queues.withdraw(state, ControlFrame::Stop);
        }
        self.queues.withdraw(state, ControlFrame::Credit);
        if !is_awaited {
            self.record_content(id, false);
        }
        self.on_received(key);
    }

    /// Updates a receiving part after bytes or a reset arrived: wakes its reader, and grants credit for
    /// bytes that were discarded.
    #[inline]
    fn on_received(&mut self, key: u32) {
        let state = self.table.at(key);
        if state.receive.take_readable() {
            self.events
                .push_back(StreamEvent::Readable { id: state.id });
        }
        if self.sizes.is_some() {
            self.report_final_size(key);
        }
        self.flow.update_credit();
        self.retire_if_over(key);
    }

    /// Processes STOP_SENDING: the peer does not need the data any more. RESET_STREAM is the response (RFC
    /// 9000 §3.5, §19.5).
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR or STREAM_LIMIT_ERROR when the peer broke a rule.
    pub fn on_stop_sending_frame(&mut self, frame: StopSending) -> Result<(), TransportError> {
        let Some(key) = self.sending(frame.id)? else {
            return Ok(());
        };
        let before = self.unsent_if_open(key);
        let state = self.table.at(key);
        let was_finished = state.send.is_finished();
        if state
            .send
            .on_stop_sending(frame.error_code, &mut self.buffers)
        {
            self.events.push_back(StreamEvent::Stopped {
                id: frame.id,
                code: frame.error_code,
                was_finished,
            });
            self.on_unsent_discarded(key, before);
            self.on_reset_due(key);
        }
        Ok(())
    }

    /// Processes MAX_DATA, which raises the connection's limit (RFC 9000 §19.9). Returns whether it
    /// does.
    ///
    /// # Errors
    ///
    /// None today; a limit that is not larger has no effect (RFC 9000 §4.1).
    pub fn on_max_data_frame(&mut self, frame: MaxData) -> Result<bool, TransportError> {
        let raises = self.flow.on_max_data(frame.limit);
        if raises {
            self.wake_writers();
        }
        Ok(raises)
    }

    /// Processes MAX_STREAM_DATA, which raises a stream's limit (RFC 9000 §19.10). Returns whether
    /// it does.
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR or STREAM_LIMIT_ERROR when the peer broke a rule.
    pub fn on_max_stream_data_frame(
        &mut self,
        frame: MaxStreamData,
    ) -> Result<bool, TransportError> {
        let Some(key) = self.sending(frame.id)? else {
            return Ok(false);
        };
        let state = self.table.at(key);
        let raises = state.send.on_max_stream_data(frame.limit);
        if raises {
            self.queues.withdraw(state, ControlFrame::Blocked);
            if state.send.take_credited() {
                self.events
                    .push_back(StreamEvent::Writable { id: state.id });
            }
            self.schedule(key);
        }
        Ok(raises)
    }

    /// Processes MAX_STREAMS, which raises the limit on streams (RFC 9000 §19.11). Returns whether
    /// it does.
    ///
    /// # Errors
    ///
    /// FRAME_ENCODING_ERROR for more streams than can have an ID.
    pub fn on_max_streams_frame(&mut self, frame: MaxStreams) -> Result<bool, TransportError> {
        check_stream_count("MAX_STREAMS", frame.limit)?;
        let raises = self.limits.is_raised_by(frame.direction, frame.limit);
        self.raise_local_limit(frame.direction, frame.limit);
        Ok(raises)
    }

    pub(super) fn raise_local_limit(&mut self, direction: Direction, limit: u64) {
        if self.limits.on_limit(direction, limit) {
            self.events.push_back(StreamEvent::Available { direction });
        }
    }

    /// Processes DATA_BLOCKED: the peer has more data than MAX_DATA allows (RFC 9000 §19.12).
    /// Credit does not wait for this frame. But if the frame reports a smaller limit than we announced
    /// at least `rtt` ago, that announcement was lost, and is repeated.
    ///
    /// # Errors
    ///
    /// None today.
    pub fn on_data_blocked_frame(
        &mut self,
        now: Time,
        rtt: Duration,
        frame: DataBlocked,
    ) -> Result<(), TransportError> {
        self.flow.on_data_blocked(now, rtt, frame.limit);
        Ok(())
    }

    /// Processes STREAM_DATA_BLOCKED: the peer has more data than MAX_STREAM_DATA allows (RFC 9000
    /// §19.13). Acts like [`Streams::on_data_blocked_frame`]. It may be the first frame of a
    /// stream.
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR or STREAM_LIMIT_ERROR when the peer broke a rule.
    pub fn on_stream_data_blocked_frame(
        &mut self,
        now: Time,
        rtt: Duration,
        frame: StreamDataBlocked,
    ) -> Result<(), TransportError> {
        let Some(key) = self.receiving(frame.id)? else {
            return Ok(());
        };
        let state = self.table.at(key);
        if state.receive.is_limit_overdue(now, rtt, frame.limit) {
            self.queues.request(key, state, ControlFrame::Credit);
        }
        Ok(())
    }

    /// Processes STREAMS_BLOCKED: the peer wants to open more streams than it may (RFC 9000
    /// §19.14). Acts like [`Streams::on_data_blocked_frame`].
    ///
    /// # Errors
    ///
    /// FRAME_ENCODING_ERROR for more streams than can have an ID.
    pub fn on_streams_blocked_frame(
        &mut self,
        now: Time,
        rtt: Duration,
        frame: StreamsBlocked,
    ) -> Result<(), TransportError> {
        check_stream_count("STREAMS_BLOCKED", frame.limit)?;
        self.limits.on_streams_blocked(now, rtt, frame);
        Ok(())
    }

    /// Returns the key of the stream for a frame about the peer's data; `None` if the stream has ended.
    #[inline]
    fn receiving(&mut self, id: StreamId) -> Result<Option<u32>, TransportError> {
        if let Some(key) = self.table.find(id)
            && self.table.at(key).receives
        {
            return Ok(Some(key));
        }
        if id.initiator() == self.side && id.direction() == Direction::Unidirectional {
            let reason = format!("the peer cannot send on stream {id}");
            return Err(TransportError::stream_state(reason));
        }
        self.find_or_begin(id)
    }

    /// Returns the key of the stream for a frame about our data; `None` if the stream has ended.
    fn sending(&mut self, id: StreamId) -> Result<Option<u32>, TransportError> {
        if id.initiator() != self.side && id.direction() == Direction::Unidirectional {
            let reason = format!("we cannot send on stream {id}");
            return Err(TransportError::stream_state(reason));
        }
        match self.table.find(id) {
            None => self.find_or_begin(id),
            found => Ok(found),
        }
    }

    /// Handles a frame for a stream without state: the stream has ended, or the peer opens it, or the peer
    /// may not open it.
    #[cold]
    fn find_or_begin(&mut self, id: StreamId) -> Result<Option<u32>, TransportError> {
        let (usage, direction) = (self.limits.on_use(id)?, id.direction());
        if self.limits.take_opened(direction) {
            self.events.push_back(StreamEvent::Opened { direction });
        }
        Ok((usage == Use::New).then(|| self.begin(id)))
    }
}

fn check_stream_count(frame: &str, limit: u64) -> Result<(), TransportError> {
    if limit <= MAX_STREAMS {
        return Ok(());
    }
    Err(TransportError::frame_encoding(format!(
        "{frame} of {limit} exceeds 2^60"
    )))
}
