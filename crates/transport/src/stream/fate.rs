//! Acknowledgement and loss of the frames that were sent. RFC 9000 §13.3.
//!
//! A frame that was lost is sent again with the current value of its information, as far as that is
//! still needed. A limit is sent again only if no other packet delivered it. On a path that loses
//! every second packet, losses and probes would otherwise trigger each other without end.

use courser_wire::{Direction, StreamId};

use super::Streams;
use super::control::ControlFrame;
use super::event::StreamEvent;
use super::send_buffer::Span;

// Acknowledged frames.
impl Streams {
    /// Processes the acknowledgement of a STREAM frame.
    #[inline]
    pub(crate) fn on_stream_acked(&mut self, id: StreamId, span: Span) {
        let Some(key) = self.table.find(id) else {
            return;
        };
        let state = self.table.at(key);
        let ends = state.send.on_acked(span, &mut self.buffers);
        // The span may have been declared lost and be queued for retransmission.
        self.queues.on_acked(state);
        if state.share.session != 0 {
            self.count_held(key);
        }
        self.report_acked(key);
        self.wake_writers();
        if ends {
            self.on_sending_over(key);
        }
    }

    /// Processes the acknowledgement of RESET_STREAM.
    pub(crate) fn on_reset_stream_acked(&mut self, id: StreamId) {
        if let Some(key) = self.table.find(id)
            && self.table.at(key).send.on_reset_acked()
        {
            self.on_sending_over(key);
        }
    }

    /// Processes the acknowledgement of RESET_STREAM_AT.
    pub(crate) fn on_reset_stream_at_acked(&mut self, id: StreamId, reliable_size: u64) {
        if let Some(key) = self.table.find(id)
            && self.table.at(key).send.on_reset_at_acked(reliable_size)
        {
            self.on_sending_over(key);
        }
    }

    /// Processes the acknowledgement of STOP_SENDING.
    pub(crate) fn on_stop_sending_acked(&mut self, id: StreamId) {
        if let Some(key) = self.table.find(id) {
            self.table.at(key).receive.on_stop_acked();
            self.retire_if_over(key);
        }
    }

    /// Processes the acknowledgement of MAX_DATA with this limit.
    pub(crate) fn on_max_data_acked(&mut self, limit: u64) {
        self.flow.receive.on_limit_acked(limit);
    }

    /// Processes the acknowledgement of MAX_STREAM_DATA with this limit.
    pub(crate) fn on_max_stream_data_acked(&mut self, id: StreamId, limit: u64) {
        if let Some(key) = self.table.find(id) {
            self.table.at(key).receive.on_limit_acked(limit);
        }
    }

    /// Processes the acknowledgement of MAX_STREAMS with this limit.
    pub(crate) fn on_max_streams_acked(&mut self, direction: Direction, limit: u64) {
        self.limits.on_max_streams_acked(direction, limit);
    }

    /// Processes the acknowledgement of DATA_BLOCKED with this limit.
    pub(crate) fn on_data_blocked_acked(&mut self, limit: u64) {
        self.flow.send.on_blocked_acked(limit);
    }

    /// Processes the acknowledgement of STREAM_DATA_BLOCKED with this limit.
    pub(crate) fn on_stream_data_blocked_acked(&mut self, id: StreamId, limit: u64) {
        if let Some(key) = self.table.find(id) {
            self.table.at(key).send.on_blocked_acked(limit);
        }
    }

    /// Processes the acknowledgement of STREAMS_BLOCKED with this limit.
    pub(crate) fn on_streams_blocked_acked(&mut self, direction: Direction, limit: u64) {
        self.limits.on_streams_blocked_acked(direction, limit);
    }

    fn on_sending_over(&mut self, key: u32) {
        let state = self.table.at(key);
        if state.send.retained() > 0 {
            self.discard_rest(key);
        }
        let state = self.table.at(key);
        self.queues.withdraw(state, ControlFrame::Reset);
        self.events
            .push_back(StreamEvent::Finished { id: state.id });
        self.retire_if_over(key);
    }

    /// Frees the bytes above the reliable size of a stream whose sending part has ended.
    fn discard_rest(&mut self, key: u32) {
        self.table.at(key).send.discard(&mut self.buffers);
        self.count_held(key);
        self.queues.unschedule(self.table.at(key));
    }
}

// Lost frames, and frames that a probe repeats.
impl Streams {
    /// Schedules the content of a lost STREAM frame again.
    pub(crate) fn on_stream_lost(&mut self, id: StreamId, span: Span) {
        if let Some(key) = self.table.find(id) {
            self.table.at(key).send.on_lost(span);
            self.schedule(key);
        }
    }

    /// Requests a lost RESET_STREAM again, unless the reset is over.
    pub(crate) fn on_reset_stream_lost(&mut self, id: StreamId) {
        if let Some(key) = self.table.find(id)
            && self.table.at(key).send.reset_to_send().is_some()
        {
            self.request(key, ControlFrame::Reset);
        }
    }

    /// Requests a lost RESET_STREAM_AT again.
    pub(crate) fn on_reset_stream_at_lost(&mut self, id: StreamId) {
        if let Some(key) = self.table.find(id) {
            self.request_reset_at(key);
        }
    }

    /// Requests a lost STOP_SENDING again, unless the stream has ended.
    pub(crate) fn on_stop_sending_lost(&mut self, id: StreamId) {
        if let Some(key) = self.table.find(id)
            && self.table.at(key).receive.on_stop_lost()
        {
            self.request(key, ControlFrame::Stop);
        }
    }

    /// Requests a lost MAX_DATA again, unless the latest limit was acknowledged.
    pub(crate) fn on_max_data_lost(&mut self) {
        self.flow.on_max_data_lost();
    }

    /// Requests a lost MAX_STREAM_DATA again, unless the latest limit was acknowledged.
    pub(crate) fn on_max_stream_data_lost(&mut self, id: StreamId) {
        if let Some(key) = self.table.find(id)
            && self.table.at(key).receive.lacks_credit()
        {
            self.request(key, ControlFrame::Credit);
        }
    }

    /// Requests a lost MAX_STREAMS again, unless the latest limit was acknowledged.
    pub(crate) fn on_max_streams_lost(&mut self, direction: Direction) {
        self.limits.on_max_streams_lost(direction);
    }

    /// Requests a lost DATA_BLOCKED again, if the present limit still blocks and none for it was
    /// acknowledged.
    pub(crate) fn on_data_blocked_lost(&mut self) {
        if self.flow.on_data_blocked_lost() {
            self.signal_if_blocked();
        }
    }

    /// Requests a lost STREAM_DATA_BLOCKED again, unless one for the present limit was acknowledged.
    pub(crate) fn on_stream_data_blocked_lost(&mut self, id: StreamId) {
        if let Some(key) = self.table.find(id)
            && !self.table.at(key).send.is_blocked_acked()
        {
            self.repeat_stream_blocked(key);
        }
    }

    /// Requests a lost STREAMS_BLOCKED again, unless one for the present limit was acknowledged.
    pub(crate) fn on_streams_blocked_lost(&mut self, direction: Direction) {
        self.limits.on_streams_blocked_lost(direction);
    }

    fn request(&mut self, key: u32, frame: ControlFrame) {
        self.queues.request(key, self.table.at(key), frame);
    }
}
