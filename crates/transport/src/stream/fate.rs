//! Acknowledgement and loss of the frames that were sent. RFC 9000 §13.3.

use courser_wire::StreamId;

use super::Streams;
use super::control::ControlFrame;
use super::event::StreamEvent;
use super::send_buffer::Span;
use crate::space::sent::SentFrame;

impl Streams {
    /// Processes the acknowledgement of a packet with this frame.Ignores frames that
    /// are not about streams.
    #[inline]
    pub fn on_frame_acked(&mut self, frame: SentFrame) {
        match frame {
            SentFrame::Stream {
                id,
                offset,
                len,
                fin,
            } => {
                if let Some(key) = self.table.find(id) {
                    self.on_span_acked(
                        key,
                        Span {
                            offset,
                            len: len.into(),
                            fin,
                        },
                    );
                }
            }
            SentFrame::ResetStream { id } => {
                if let Some(key) = self.table.find(id)
                    && self.table.at(key).send.on_reset_acked()
                {
                    self.on_sending_over(key);
                }
            }
            SentFrame::ResetStreamAt { id, reliable_size } => {
                self.on_reset_at_acked(id, reliable_size);
            }
            SentFrame::StopSending { id } => {
                if let Some(key) = self.table.find(id) {
                    self.table.at(key).receive.on_stop_acked();
                    self.retire_if_over(key);
                }
            }
            SentFrame::MaxData { limit } => self.flow.receive.on_limit_acked(limit),
            SentFrame::MaxStreamData { id, limit } => {
                if let Some(key) = self.table.find(id) {
                    self.table.at(key).receive.on_limit_acked(limit);
                }
            }
            SentFrame::MaxStreams { direction, limit } => {
                self.limits.on_max_streams_acked(direction, limit);
            }
            SentFrame::DataBlocked { limit } => self.flow.send.on_blocked_acked(limit),
            SentFrame::StreamDataBlocked { id, limit } => {
                if let Some(key) = self.table.find(id) {
                    self.table.at(key).send.on_blocked_acked(limit);
                }
            }
            SentFrame::StreamsBlocked { direction, limit } => {
                self.limits.on_streams_blocked_acked(direction, limit);
            }
            _ => {}
        }
    }

    #[inline]
    fn on_span_acked(&mut self, key: u32, span: Span) {
        let state = self.table.at(key);
        let ends = state.send.on_acked(span, &mut self.buffers);
        // The span may have been declared lost and be queued for retransmission.
        self.queues.on_acked(key, state);
        self.report_acked(key);
        self.wake_writers();
        if ends {
            self.on_sending_over(key);
        }
    }

    /// Processes the acknowledgement of RESET_STREAM_AT.
    fn on_reset_at_acked(&mut self, id: StreamId, reliable_size: u64) {
        if let Some(key) = self.table.find(id)
            && self.table.at(key).send.on_reset_at_acked(reliable_size)
        {
            self.on_sending_over(key);
        }
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
        self.queues.unschedule(key, self.table.at(key));
    }

    /// Processes the loss of a packet with this frame: sends again the information that is still
    /// needed, with current values. Ignores frames that are not about
    /// streams.
    ///
    /// A limit is sent again only if no other packet delivered it. Otherwise losses and probes would trigger
    /// each other endlessly on a path that loses every second packet.
    pub fn on_frame_lost(&mut self, frame: SentFrame) {
        match frame {
            SentFrame::Stream {
                id,
                offset,
                len,
                fin,
            } => {
                if let Some(key) = self.table.find(id) {
                    self.table.at(key).send.on_lost(Span {
                        offset,
                        len: len.into(),
                        fin,
                    });
                    self.schedule(key);
                }
            }
            SentFrame::ResetStream { id } => {
                if let Some(key) = self.table.find(id)
                    && self.table.at(key).send.reset_to_send().is_some()
                {
                    self.request(key, ControlFrame::Reset);
                }
            }
            SentFrame::ResetStreamAt { id, .. } => {
                if let Some(key) = self.table.find(id) {
                    self.request_reset_at(key);
                }
            }
            SentFrame::StopSending { id } => {
                if let Some(key) = self.table.find(id)
                    && self.table.at(key).receive.on_stop_lost()
                {
                    self.request(key, ControlFrame::Stop);
                }
            }
            SentFrame::MaxData { .. } => self.flow.on_max_data_lost(),
            SentFrame::MaxStreamData { id, .. } => {
                if let Some(key) = self.table.find(id)
                    && self.table.at(key).receive.lacks_credit()
                {
                    self.request(key, ControlFrame::Credit);
                }
            }
            SentFrame::MaxStreams { direction, .. } => self.limits.on_max_streams_lost(direction),
            SentFrame::DataBlocked { .. } if self.flow.on_data_blocked_lost() => {
                self.signal_if_blocked();
            }
            SentFrame::StreamDataBlocked { id, .. } => {
                if let Some(key) = self.table.find(id)
                    && !self.table.at(key).send.is_blocked_acked()
                {
                    self.repeat_stream_blocked(key);
                }
            }
            SentFrame::StreamsBlocked { direction, .. } => {
                self.limits.on_streams_blocked_lost(direction);
            }
            _ => {}
        }
    }

    fn request(&mut self, key: u32, frame: ControlFrame) {
        self.queues.request(key, self.table.at(key), frame);
    }
}
