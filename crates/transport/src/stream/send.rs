//! The sending part of a stream. RFC 9000 §3.1.

mod fit;

use bytes::Bytes;
use courser_wire::StreamId;

use self::fit::{Fit, record};

use super::buffers::Buffers;
use super::event::{ClosedStream, FinishError, WriteError};
use super::send_budget::{LEAD, WriteLimits};
use super::send_buffer::{SendBuffer, Span};
use super::stats::{BlockedBy, SendStreamStats};
use crate::build::packet_builder::PacketBuilder;
use crate::flow::SendLimit;

/// Sending part of a stream, RFC 9000 §3.1 figure 2.
///
/// ```text
///  Ready --first frame--> Send --FIN sent--> DataSent --all acked--> DataRecvd
///    |                      |                   |
///    +------ reset, or STOP_SENDING arrives ----+--> ResetSent --acked--> ResetRecvd
///    |                      |                   |        ^                    ^
///    +------ reset with a reliable size --------+--> ResetAt --all acked------+
/// ```
///
/// In `ResetAt` the bytes below the reliable size and RESET_STREAM_AT are sent until both are
/// acknowledged (draft-ietf-quic-reliable-stream-reset-10 §5.3 calls it "Data Sent").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Ready,
    Send,
    DataSent,
    DataRecvd,
    ResetSent(Reset),
    ResetAt(Reset, Delivery),
    ResetRecvd,
}

/// The part of a reset stream that is still delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Delivery {
    reliable_size: u64,
    /// True if a RESET_STREAM_AT with this reliable size was acknowledged.
    is_acked: bool,
}

/// The contents of RESET_STREAM, also for retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reset {
    pub(super) code: u64,
    pub(super) final_size: u64,
}

/// The condition for which a blocked writer waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Waiting {
    #[default]
    No,
    /// Fewer unsent bytes of this stream.
    ForStream,
    /// Fewer unacknowledged bytes of all streams, or more credit of the connection.
    ForConnection,
    /// The same as `ForConnection`, or that little of this stream is unsent: it precedes all others of its group.
    ForLead,
    /// More credit of this stream: MAX_STREAM_DATA.
    ForCredit,
}

/// State, bytes and credit of the sending part.
#[derive(Debug, Default)]
pub(super) struct SendPart {
    state: State,
    buffer: SendBuffer,
    limit: SendLimit,
    /// The code of the peer's STOP_SENDING, if it sent one.
    stopped: Option<u64>,
    waiting: Waiting,
    /// Bytes that were sent again so far.
    retransmitted: u64,
    /// The application is notified when this many bytes are acknowledged; 0 if it did not ask for that.
    awaited: u64,
}

impl SendPart {
    /// Begins a new stream in the memory of a previous one.
    pub(super) fn begin(&mut self, limit: u64) {
        self.state = State::Ready;
        self.limit = SendLimit::new(limit);
        (self.stopped, self.waiting) = (None, Waiting::No);
        (self.retransmitted, self.awaited) = (0, 0);
    }

    /// Returns the progress for the application; `None` when the stream was reset or everything was
    /// acknowledged.
    pub(super) fn stats(&self) -> Option<SendStreamStats> {
        let is_open = matches!(self.state, State::Ready | State::Send | State::DataSent);
        is_open.then(|| SendStreamStats {
            written: self.buffer.written(),
            sent: self.buffer.sent(),
            acked: self.buffer.acked(),
            retransmitted: self.retransmitted,
            limit: self.limit.limit(),
        })
    }

    /// Returns true if the first `len` bytes were acknowledged; otherwise [`SendPart::take_acked`]
    /// reports it.
    pub(super) fn await_acked(&mut self, len: u64) -> Result<bool, ClosedStream> {
        match self.state {
            State::Ready | State::Send | State::DataSent => {}
            State::ResetAt(_, delivery) if len <= delivery.reliable_size => {}
            _ => return Err(ClosedStream),
        }
        if self.buffer.acked() >= len {
            return Ok(true);
        }
        self.awaited = match self.awaited {
            0 => len,
            awaited => awaited.min(len),
        };
        Ok(false)
    }

    /// Returns the number of acknowledged bytes, once when it reaches the awaited number.
    #[inline]
    pub(super) fn take_acked(&mut self) -> Option<u64> {
        if self.awaited == 0 || self.buffer.acked() < self.awaited {
            return None;
        }
        self.awaited = 0;
        Some(self.buffer.acked())
    }

    /// Returns the limit for which a blocked writer waits. `credit` is the connection's; `unclaimed` is the part
    /// of it that is left after the unsent bytes of all streams.
    pub(super) fn blocked_by(
        &self,
        credit: u64,
        unclaimed: u64,
    ) -> Result<Option<BlockedBy>, ClosedStream> {
        if self.buffer.is_finished() || !matches!(self.state, State::Ready | State::Send) {
            return Err(ClosedStream);
        }
        let unsent = self.buffer.unsent();
        let own = self.limit.available();
        // All unsent bytes have to wait for the first one.
        let common = if unsent > 0 { credit } else { unclaimed };
        Ok(match self.waiting {
            Waiting::No => None,
            Waiting::ForCredit => Some(BlockedBy::StreamFlowControl),
            _ if own == 0 => Some(BlockedBy::StreamFlowControl),
            _ if common == 0 => Some(BlockedBy::ConnectionFlowControl),
            _ => Some(BlockedBy::Congestion),
        })
    }

    /// Frees spare capacity.
    pub(super) fn shrink(&mut self) {
        self.buffer.shrink();
    }

    /// Frees the contents of an ended stream.
    pub(super) fn recycle(&mut self, buffers: &mut Buffers) {
        self.buffer.recycle(buffers);
    }

    /// Returns true in the terminal states, `DataRecvd` and `ResetRecvd`.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.state, State::DataRecvd | State::ResetRecvd)
    }

    /// Returns true while the end or a reset waits for its acknowledgement.
    pub(super) const fn is_pending(&self) -> bool {
        match self.state {
            State::Ready | State::Send => self.buffer.is_finished(),
            State::DataSent | State::ResetSent(_) | State::ResetAt(..) => true,
            State::DataRecvd | State::ResetRecvd => false,
        }
    }

    /// Returns the code of the peer's STOP_SENDING.
    pub(super) const fn stopped(&self) -> Option<u64> {
        self.stopped
    }

    /// Returns the bytes kept until they are acknowledged.
    #[inline]
    pub(super) const fn retained(&self) -> u64 {
        self.buffer.retained()
    }

    /// Accepts bytes from the application and returns how many.
    pub(super) fn write(
        &mut self,
        data: &[u8],
        limits: WriteLimits,
        buffers: &mut Buffers,
    ) -> Result<usize, WriteError> {
        let len = self.admit(data.len(), limits)?;
        self.buffer.write(&data[..len], buffers);
        Ok(len)
    }

    /// Accepts bytes from the application without copying them and returns how many.
    pub(super) fn write_shared(
        &mut self,
        data: &mut Bytes,
        limits: WriteLimits,
        buffers: &mut Buffers,
    ) -> Result<usize, WriteError> {
        let len = self.admit(data.len(), limits)?;
        self.buffer.write_shared(data, len, buffers);
        Ok(len)
    }

    /// Returns how many of `len` bytes may be written now.
    fn admit(&mut self, len: usize, limits: WriteLimits) -> Result<usize, WriteError> {
        if let Some(code) = self.stopped {
            return Err(WriteError::Stopped(code));
        }
        if self.buffer.is_finished() || !matches!(self.state, State::Ready | State::Send) {
            return Err(WriteError::ClosedStream);
        }
        let unsent = self.buffer.unsent();
        let own = self.limit.available().saturating_sub(unsent);
        let share = (limits.unsent_limit / SHARES).saturating_sub(unsent);
        let credit_for_writes = own.min(limits.credit.max(share.min(limits.ahead)));
        let accepted = credit_for_writes.max(AHEAD.saturating_sub(unsent));
        let ahead = accepted.min(limits.unsent_limit.saturating_sub(unsent));
        let room = self.room(limits);
        let len = ahead.min(room).min(len as u64);
        if len == 0 && (ahead == 0 || room == 0) {
            let is_ahead = ahead == 0;
            self.waiting = if is_ahead {
                Waiting::ForStream
            } else {
                Waiting::ForConnection
            };
            return Err(WriteError::Blocked);
        }
        Ok(usize::try_from(len).expect("at most the length of a slice"))
    }

    /// Returns how many bytes could be written within the peer's credit.
    #[inline]
    pub(super) fn credit_for_writes(&self, limits: WriteLimits) -> u64 {
        let own = self.limit.available().saturating_sub(self.buffer.unsent());
        own.min(limits.credit)
    }

    /// Returns how many bytes the memory of the connection has room for.
    fn room(&self, limits: WriteLimits) -> u64 {
        let little = LITTLE.saturating_sub(self.buffer.retained());
        limits.connection.max(little.min(limits.reserve))
    }

    /// Returns how many bytes written after `ahead` more bytes could be sent within the credit, or
    /// `u64::MAX` if bytes can never be sent. With 0, if `ahead` is 0, the writer is notified later, like after
    /// a blocked write.
    pub(super) fn credit_beyond(&mut self, ahead: u64, limits: WriteLimits) -> u64 {
        if !matches!(self.state, State::Ready | State::Send) {
            return u64::MAX;
        }
        let credit = self.credit_for_writes(limits).min(self.room(limits));
        if credit > ahead || ahead > 0 {
            return credit.saturating_sub(ahead);
        }
        self.waiting = if self.limit.available() <= self.buffer.unsent() {
            Waiting::ForCredit
        } else {
            Waiting::ForConnection
        };
        0
    }

    /// Returns true while a writer waits for credit of this stream.
    pub(super) fn is_waiting_for_credit(&self) -> bool {
        self.waiting == Waiting::ForCredit
    }

    /// Returns true once when a writer waits for credit of this stream and it has arrived.
    pub(super) fn take_credited(&mut self) -> bool {
        let is_over = self.is_waiting_for_credit() && self.limit.available() > self.buffer.unsent();
        if is_over {
            self.waiting = Waiting::No;
        }
        is_over
    }

    /// Returns the bytes never sent.
    #[inline]
    pub(super) const fn unsent(&self) -> u64 {
        self.buffer.unsent()
    }

    /// Returns true if the last write was blocked by the limits of the whole connection.
    pub(super) fn is_waiting_for_connection(&self) -> bool {
        matches!(self.waiting, Waiting::ForConnection | Waiting::ForLead)
    }

    /// Returns true if the last write was blocked although the stream preceded all others of its group.
    pub(super) fn is_waiting_for_lead(&self) -> bool {
        self.waiting == Waiting::ForLead
    }

    /// Records that the writer waits no more if another attempt of a blocked write has succeeded.
    pub(super) fn end_wait_if(&mut self, has_succeeded: bool) {
        if has_succeeded {
            self.waiting = Waiting::No;
        }
    }

    /// Lets the blocked writer try again as soon as little is unsent.
    pub(super) fn wait_for_lead(&mut self) {
        self.waiting = Waiting::ForLead;
    }

    /// Returns true once when a blocked writer may try again, because half of its limit on unsent bytes is free.
    #[inline]
    pub(super) fn take_writable(&mut self, unsent_limit: u64) -> bool {
        let below = match self.waiting {
            Waiting::ForStream => unsent_limit / 2,
            Waiting::ForLead => LEAD / 2,
            Waiting::No | Waiting::ForConnection | Waiting::ForCredit => return false,
        };
        if self.buffer.unsent() > below {
            return false;
        }
        self.waiting = Waiting::No;
        true
    }

    /// Returns true once when a writer that was blocked by the connection may try again.
    pub(super) fn take_connection_writable(&mut self) -> bool {
        let waited = self.is_waiting_for_connection();
        if waited {
            self.waiting = Waiting::No;
        }
        waited
    }

    /// Ends the stream after the bytes written.
    pub(super) fn finish(&mut self) -> Result<(), FinishError> {
        if let Some(code) = self.stopped {
            return Err(FinishError::Stopped(code));
        }
        if self.buffer.is_finished() || !matches!(self.state, State::Ready | State::Send) {
            return Err(FinishError::ClosedStream);
        }
        self.buffer.finish();
        // A blocked writer will not try again.
        self.waiting = Waiting::No;
        Ok(())
    }

    /// Resets the stream for the application. Returns true if RESET_STREAM is due.
    pub(super) fn reset(&mut self, code: u64, buffers: &mut Buffers) -> Result<bool, ClosedStream> {
        match self.state {
            State::Ready | State::Send | State::DataSent | State::ResetAt(..) => {
                self.enter_reset(code, buffers);
                Ok(true)
            }
            // STOP_SENDING came first: the stream is already reset, as requested.
            State::ResetSent(_) | State::ResetRecvd if self.stopped.is_some() => Ok(false),
            State::ResetSent(_) | State::ResetRecvd | State::DataRecvd => Err(ClosedStream),
        }
    }

    /// Returns true if the application has finished the stream.
    pub(super) const fn is_finished(&self) -> bool {
        self.buffer.is_finished()
    }

    /// Processes STOP_SENDING. Returns true if RESET_STREAM with the peer's code has to be sent (RFC 9000
    /// §3.5).
    pub(super) fn on_stop_sending(&mut self, code: u64, buffers: &mut Buffers) -> bool {
        match self.state {
            State::Ready | State::Send | State::DataSent | State::ResetAt(..) => {
                self.stopped = Some(code);
                self.enter_reset(code, buffers);
                true
            }
            State::DataRecvd | State::ResetSent(_) | State::ResetRecvd => false,
        }
    }

    /// Resets the stream but delivers its first `reliable_size` bytes, or all that were written if these are
    /// fewer. Returns true if bytes or frames were withdrawn. A second call may only reduce the
    /// size, and keeps the code of the first (draft-ietf-quic-reliable-stream-reset-10 §5.2).
    pub(super) fn reset_at(
        &mut self,
        code: u64,
        reliable_size: u64,
        buffers: &mut Buffers,
    ) -> Result<bool, ClosedStream> {
        let reliable_size = reliable_size.min(self.buffer.written());
        let (reset, is_shorter) = match self.state {
            State::Ready | State::Send | State::DataSent => {
                let final_size = self.buffer.sent().max(reliable_size);
                self.buffer.truncate(final_size, reliable_size, buffers);
                (Reset { code, final_size }, true)
            }
            State::ResetAt(reset, delivery) => {
                self.buffer.remove_lost_from(reliable_size);
                (reset, reliable_size < delivery.reliable_size)
            }
            State::ResetSent(_) | State::ResetRecvd if self.stopped.is_some() => return Ok(false),
            State::ResetSent(_) | State::ResetRecvd | State::DataRecvd => return Err(ClosedStream),
        };
        if is_shorter {
            let delivery = Delivery {
                reliable_size,
                is_acked: false,
            };
            self.state = State::ResetAt(reset, delivery);
        }
        self.waiting = Waiting::No;
        Ok(is_shorter)
    }

    fn enter_reset(&mut self, code: u64, buffers: &mut Buffers) {
        let reset = match self.state {
            // Code and final size may not change (draft-ietf-quic-reliable-stream-reset-10 §5.2).
            State::ResetAt(reset, _) => reset,
            _ => Reset {
                code,
                final_size: self.buffer.sent(),
            },
        };
        self.state = State::ResetSent(reset);
        self.buffer.discard(buffers);
        self.waiting = Waiting::No;
    }

    /// Returns the contents of RESET_STREAM, until it is acknowledged.
    pub(super) const fn reset_to_send(&self) -> Option<Reset> {
        match self.state {
            State::ResetSent(reset) => Some(reset),
            _ => None,
        }
    }

    /// Returns the contents of RESET_STREAM_AT and its reliable size, until it is acknowledged.
    /// The frame waits until all bytes below the final size were sent once: then flow control
    /// covers it.
    pub(super) fn reset_at_to_send(&self) -> Option<(Reset, u64)> {
        match self.state {
            State::ResetAt(reset, delivery) if !delivery.is_acked && self.buffer.unsent() == 0 => {
                Some((reset, delivery.reliable_size))
            }
            _ => None,
        }
    }

    /// Processes the acknowledgement of RESET_STREAM_AT with this reliable size. Returns true if
    /// that ends the stream.
    pub(super) fn on_reset_at_acked(&mut self, reliable_size: u64) -> bool {
        if let State::ResetAt(_, delivery) = &mut self.state
            && delivery.reliable_size == reliable_size
        {
            delivery.is_acked = true;
        }
        self.end_if_delivered()
    }

    /// Ends a stream whose reset and whose bytes below the reliable size are acknowledged.
    fn end_if_delivered(&mut self) -> bool {
        let State::ResetAt(_, delivery) = self.state else {
            return false;
        };
        let ends = delivery.is_acked && self.buffer.acked() >= delivery.reliable_size;
        if ends {
            self.state = State::ResetRecvd;
        }
        ends
    }

    /// Frees the remaining bytes when the stream has ended.
    pub(super) fn discard(&mut self, buffers: &mut Buffers) {
        self.buffer.discard(buffers);
    }

    /// Processes the acknowledgement of RESET_STREAM. Returns true if that ends the stream.
    pub(super) fn on_reset_acked(&mut self) -> bool {
        let ends = matches!(self.state, State::ResetSent(_));
        if ends {
            self.state = State::ResetRecvd;
        }
        ends
    }

    /// Raises the peer's limit. Returns true if `limit` is larger than before.
    pub(super) fn on_max_stream_data(&mut self, limit: u64) -> bool {
        self.limit.raise(limit)
    }

    /// Returns true if data could be sent for the first time within this stream's limit.
    #[inline]
    pub(super) fn has_new(&self) -> bool {
        self.buffer.unsent() > 0 && self.limit.available() > 0
    }

    /// Returns the bytes that the peer permits on this stream beyond those that were sent.
    pub(super) fn credit(&self) -> u64 {
        self.limit.available()
    }

    /// Returns true if a frame without need for credit could be sent: a lost span, or a FIN without data.
    #[inline]
    pub(super) fn has_free(&self) -> bool {
        (self.buffer.has_lost() || self.buffer.is_fin_due())
            && matches!(
                self.state,
                State::Ready | State::Send | State::DataSent | State::ResetAt(..)
            )
    }

    /// Returns the bytes never sent; `None` if any bytes are to be retransmitted.
    #[inline]
    pub(super) fn only_unsent(&self) -> Option<u64> {
        (!self.buffer.has_lost()).then_some(self.buffer.unsent())
    }

    /// Returns true once per limit that holds data back: STREAM_DATA_BLOCKED is due.
    #[inline]
    pub(super) fn take_blocked(&mut self) -> bool {
        self.has_more() && self.limit.take_signal()
    }

    /// Returns true if there are unsent bytes, or a writer waits for credit to add some.
    #[inline]
    fn has_more(&self) -> bool {
        self.buffer.unsent() > 0 || self.is_waiting_for_credit()
    }

    /// Returns the limit for STREAM_DATA_BLOCKED, if it still applies.
    pub(super) fn blocked_at(&self) -> Option<u64> {
        let is_blocked = self.has_more() && self.limit.available() == 0;
        is_blocked.then_some(self.limit.limit())
    }

    /// Processes the acknowledgement of STREAM_DATA_BLOCKED with this limit.
    pub(super) fn on_blocked_acked(&mut self, limit: u64) {
        self.limit.on_blocked_acked(limit);
    }

    /// Returns true if STREAM_DATA_BLOCKED for the current limit was acknowledged.
    pub(super) fn is_blocked_acked(&self) -> bool {
        self.limit.is_blocked_acked()
    }

    /// Requests another STREAM_DATA_BLOCKED, because the last one was lost or is to be repeated.
    pub(super) fn repeat_blocked(&mut self) {
        self.limit.clear_signal();
    }

    /// Records that STREAM_DATA_BLOCKED was sent, which moves `Ready` to `Send` (RFC 9000 §3.1).
    pub(super) fn on_blocked_sent(&mut self) {
        if self.state == State::Ready {
            self.state = State::Send;
        }
    }

    /// Writes a frame with bytes that were never sent, at most `credit` of them.
    #[inline]
    pub(super) fn write_new(
        &mut self,
        id: StreamId,
        credit: u64,
        packet: &mut PacketBuilder<'_>,
    ) -> Option<Span> {
        let unsent = self.buffer.next_unsent();
        let allowed = unsent.len.min(credit).min(self.limit.available());
        let fit = Fit::of(packet.remaining(), id, unsent.offset, allowed)?;
        let span = Span {
            len: fit.len as u64,
            fin: unsent.fin && fit.len as u64 == unsent.len,
            ..unsent
        };
        fit.write_header(id, span, packet);
        self.buffer
            .send_new(packet.writer().advance_with(fit.len), span.fin);
        self.limit.consume(span.len);
        record(id, span, packet);
        if !matches!(self.state, State::ResetAt(..)) {
            self.state = if self.buffer.is_all_sent() {
                State::DataSent
            } else {
                State::Send
            };
        }
        Some(span)
    }

    /// Writes a frame with lost bytes, or a FIN without data when all bytes were sent.
    pub(super) fn write_free(
        &mut self,
        id: StreamId,
        packet: &mut PacketBuilder<'_>,
    ) -> Option<Span> {
        let Some(lost) = self.buffer.next_lost() else {
            return self.write_new(id, 0, packet);
        };
        let fit = Fit::of(packet.remaining(), id, lost.offset, lost.len)?;
        let span = Span {
            len: fit.len as u64,
            fin: lost.fin && fit.len as u64 == lost.len,
            ..lost
        };
        self.retransmitted += span.len;
        fit.write_header(id, span, packet);
        self.buffer
            .send_lost(span, packet.writer().advance_with(fit.len));
        record(id, span, packet);
        Some(span)
    }

    /// Processes the acknowledgement of this span. Returns true if it was the last one.
    #[inline]
    pub(super) fn on_acked(&mut self, span: Span, buffers: &mut Buffers) -> bool {
        match self.state {
            State::Send | State::DataSent => self.buffer.on_acked(span, buffers),
            State::ResetAt(..) => {
                self.buffer.on_acked(span, buffers);
                return self.end_if_delivered();
            }
            // Data discarded by a reset does not matter any more.
            State::Ready | State::DataRecvd | State::ResetSent(_) | State::ResetRecvd => {
                return false;
            }
        }
        let ends = self.buffer.is_all_acked();
        if ends {
            self.state = State::DataRecvd;
        }
        ends
    }

    /// Processes the loss of the packet with this span.
    pub(super) fn on_lost(&mut self, span: Span) {
        // After a reset only the reset is retransmitted (RFC 9000 §3.3).
        match self.state {
            State::Send | State::DataSent => self.buffer.on_lost(span),
            State::ResetAt(_, delivery) => {
                self.buffer.on_lost(span);
                self.buffer.remove_lost_from(delivery.reliable_size);
            }
            State::Ready | State::DataRecvd | State::ResetSent(_) | State::ResetRecvd => {}
        }
    }
}

/// Bytes of one stream that may be written without any credit (limit K80), so that the start of a response,
/// or a small response, can be sent as soon as there is credit. No more of a response is stored for a peer
/// that grants no credit (attack A88).
pub(super) const AHEAD: u64 = 512;

/// A stream may hold one [`SHARES`]th of the unsent limit when only the connection lacks credit, as long as
/// all streams together hold at most half of that limit beyond the credit (limit K214). Otherwise a response
/// during a transfer could be written only in pieces of [`AHEAD`] bytes, because the transfer's writer claims
/// all credit as soon as it arrives.
const SHARES: u64 = 16;

/// Bytes of a stream that may be kept in the reserve of the connection (limit K590): those of a request or a small
/// response.
const LITTLE: u64 = 4 << 10;

#[cfg(test)]
mod tests;
