//! Writing of stream frames into packets.

use std::time::Duration;

use courser_base::Time;
use courser_wire::frame::{
    MaxStreamData, ResetStream, ResetStreamAt, StopSending, StreamDataBlocked,
};

use super::Streams;
use super::control::ControlFrame;
use super::event::StreamEvent;
use crate::build::packet_builder::PacketBuilder;
use crate::flow::{LARGEST_CONTROL, fits_control_frame};
use crate::space::sent::SentFrame;

/// The data that waits for packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Backlog {
    /// The bytes that were written and not sent.
    pub(crate) unsent: u64,
    /// True if they are about as many as a stream may hold, so that its writer may have more.
    pub(crate) is_limited: bool,
    /// The bytes that the peer permits beyond those that were sent, on the stream if it is the only one.
    pub(crate) credit: u64,
}

impl Streams {
    /// Returns true if a frame could be written within the limits of the peer.
    #[inline]
    pub fn has_frames_to_send(&self) -> bool {
        self.flow.has_frames_to_send()
            || self.limits.has_frames_to_send()
            || !self.queues.control.is_empty()
            || self.has_stream_data()
    }

    /// Returns true if a STREAM frame could be written within the limits of the peer.
    #[inline]
    pub fn has_stream_data(&self) -> bool {
        !self.queues.free.is_empty()
            || (!self.queues.new.is_empty() && self.flow.send.available() > 0)
    }

    /// Returns the data that waits for packets.
    pub(crate) fn backlog(&mut self) -> Backlog {
        // The credit of a stream matters if it is the only one.
        let of_stream = match self.queues.new.only() {
            Some(key) => self.table.at(key).send.credit(),
            None => u64::MAX,
        };
        let sending = &self.buffers.sending;
        Backlog {
            unsent: sending.unsent(),
            is_limited: 2 * sending.unsent() >= sending.unsent_limit(),
            credit: self.flow.send.available().min(of_stream),
        }
    }

    /// Returns an upper bound on the bytes of all frames that are due. Returns `None` if that is above `max`, if
    /// many streams have data, or if any of it is a retransmission.
    pub fn pending_bytes_up_to(&mut self, max: u64) -> Option<u64> {
        let control =
            self.queues.control.max_frames() + self.flow.due_frames() + self.limits.due_frames();
        let mut left = (control * LARGEST_CONTROL) as u64;
        for list in [&self.queues.free, &self.queues.new] {
            if list.is_empty() {
                continue;
            }
            if let Some(key) = list.only() {
                left += self.table.at(key).send.only_unsent()? + LARGEST_STREAM_HEADER;
                continue;
            }
            let (streams, count) = list.few::<FEW_STREAMS>()?;
            for &key in &streams[..count] {
                left += self.table.at(key).send.only_unsent()? + LARGEST_STREAM_HEADER;
            }
        }
        (left <= max).then_some(left)
    }

    /// Writes RESET_STREAM, STOP_SENDING, and the frames that grant or request credit, as many as
    /// are pending and fit. `rtt` determines how fast windows grow.
    pub fn write_control_frames(
        &mut self,
        now: Time,
        rtt: Duration,
        packet: &mut PacketBuilder<'_>,
    ) {
        self.on_timeout(now);
        if self.flow.has_frames_to_send() {
            let has_data = !self.queues.new.is_empty();
            self.flow.write_frames(now, rtt, has_data, packet);
        }
        if self.limits.has_frames_to_send() {
            self.limits.write_frames(now, packet);
        }
        while let Some(key) = self.queues.control.first() {
            if !fits_control_frame(packet) {
                return;
            }
            if !self.write_one_control_frame(key, now, rtt, packet) {
                let pending = &mut self.table.at(key).pending;
                self.queues.control.pop_first(pending);
            }
        }
    }

    /// Writes one control frame of a stream. Returns false if none is pending.
    fn write_one_control_frame(
        &mut self,
        key: u32,
        now: Time,
        rtt: Duration,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        let state = self.table.at(key);
        let id = state.id;
        let Some(control) = ControlFrame::ALL
            .into_iter()
            .find(|&control| state.pending.has(control))
        else {
            return false;
        };
        self.queues.withdraw(state, control);
        match control {
            ControlFrame::Reset => {
                if let Some(reset) = state.send.reset_to_send() {
                    let (error_code, final_size) = (reset.code, reset.final_size);
                    ResetStream {
                        id,
                        error_code,
                        final_size,
                    }
                    .encode(packet.writer());
                    packet.record(SentFrame::ResetStream { id });
                } else {
                    self.write_reset_at(key, packet);
                }
            }
            ControlFrame::Stop => {
                if let Some(error_code) = state.receive.stop_to_send() {
                    StopSending { id, error_code }.encode(packet.writer());
                    packet.record(SentFrame::StopSending { id });
                    state.receive.on_stop_sent();
                }
            }
            ControlFrame::Credit => {
                let credit = state.receive.credit_to_send(now, rtt, &mut self.flow);
                if let Some(limit) = credit {
                    MaxStreamData { id, limit }.encode(packet.writer());
                    packet.record(SentFrame::MaxStreamData { id, limit });
                }
                self.flow.update_credit();
            }
            ControlFrame::Blocked => {
                if let Some(limit) = state.send.blocked_at() {
                    StreamDataBlocked { id, limit }.encode(packet.writer());
                    packet.record(SentFrame::StreamDataBlocked { id, limit });
                    state.send.on_blocked_sent();
                }
            }
        }
        true
    }

    /// Writes RESET_STREAM_AT of a stream, if it is due.
    fn write_reset_at(&mut self, key: u32, packet: &mut PacketBuilder<'_>) {
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

    /// Requests RESET_STREAM_AT if it is due.
    pub(super) fn request_reset_at(&mut self, key: u32) {
        let state = self.table.at(key);
        if state.send.reset_at_to_send().is_some() {
            self.queues.request(key, state, ControlFrame::Reset);
        }
    }

    /// Writes STREAM frames until the packet is full: lost data first, then new data, each by
    /// priority and in turns. Returns the number of frames. If the packet is filled, the last frame
    /// has no LEN field, so nothing may follow it.
    #[inline]
    pub fn write_stream_frames(&mut self, packet: &mut PacketBuilder<'_>) -> usize {
        let mut frames = 0;
        while packet.remaining() > 0 {
            let has_written = if self.queues.free.is_empty() {
                self.write_new_frame(packet)
            } else {
                self.write_free_frame(packet)
            };
            if !has_written {
                break;
            }
            frames += 1;
        }
        frames
    }

    /// Writes a frame with new data. Returns false if nothing is allowed or fits.
    #[inline]
    fn write_new_frame(&mut self, packet: &mut PacketBuilder<'_>) -> bool {
        let credit = self.flow.send.available();
        let Some(key) = self.queues.new.first().filter(|_| credit > 0) else {
            return false;
        };
        let state = self.table.at(key);
        let Some(span) = state.send.write_new(state.id, credit, packet) else {
            return false;
        };
        self.flow.send.consume(span.len);
        self.counters.data_sent += span.len;
        self.buffers.sending.on_sent(span.len);
        if state
            .send
            .take_writable(self.buffers.sending.unsent_limit())
        {
            self.events
                .push_back(StreamEvent::Writable { id: state.id });
        }
        if !self.queues.on_new_sent(self.now, state, span.len) {
            let is_blocked = self.queues.signal_blocked(key, state);
            self.counters.stream_blocked += u64::from(is_blocked);
            self.request_reset_at(key);
        }
        if span.len == credit {
            self.signal_if_blocked();
        }
        true
    }

    /// Writes a frame that needs no credit. Returns false if it does not fit.
    fn write_free_frame(&mut self, packet: &mut PacketBuilder<'_>) -> bool {
        let Some(key) = self.queues.free.first() else {
            return false;
        };
        let state = self.table.at(key);
        let Some(span) = state.send.write_free(state.id, packet) else {
            return false;
        };
        self.counters.data_retransmitted += span.len;
        self.queues.on_free_sent(state, span.len);
        true
    }

    /// Requests the frames that ask for missing credit again. Called when no ack-eliciting packet is in
    /// flight, so that the connection does not time out (RFC 9000 §4.1).
    pub fn repeat_blocked(&mut self) {
        self.flow.send.clear_signal();
        self.signal_if_blocked();
        self.limits.repeat_blocked();
        for key in self.table.keys().collect::<Vec<_>>() {
            self.repeat_stream_blocked(key);
        }
    }

    pub(super) fn repeat_stream_blocked(&mut self, key: u32) {
        let state = self.table.at(key);
        if state.sends && state.send.blocked_at().is_some() {
            state.send.repeat_blocked();
            self.schedule(key);
        }
    }
}

/// Maximum of streams that [`Streams::pending_bytes_up_to`] examines.
const FEW_STREAMS: usize = 4;

/// Bytes of type, stream ID, offset and length at their largest.
const LARGEST_STREAM_HEADER: u64 = 1 + 3 * 8;
