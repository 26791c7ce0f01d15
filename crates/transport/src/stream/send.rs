//! The sending part of a stream. RFC 9000 §3.1.

use bytes::Bytes;
use courser_wire::{StreamId, frame, varint_len};

use super::buffers::Buffers;
use super::event::{ClosedStream, FinishError, WriteError};
use super::send_buffer::{SendBuffer, Span};
use crate::build::packet_builder::PacketBuilder;
use crate::flow::SendLimit;
use crate::space::sent::SentFrame;

/// Sending part of a stream, RFC 9000 §3.1 figure 2.
///
/// ```text
///  Ready --first frame--> Send --FIN sent--> DataSent --all acked--> DataRecvd
///    |                      |                   |
///    +------ reset, or STOP_SENDING arrives ----+--> ResetSent --acked--> ResetRecvd
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Ready,
    Send,
    DataSent,
    DataRecvd,
    ResetSent(Reset),
    ResetRecvd,
}

/// What RESET_STREAM says, and says again if it is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reset {
    pub(super) code: u64,
    pub(super) final_size: u64,
}

/// What a writer that was refused waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Waiting {
    #[default]
    No,
    /// The unsent bytes of this stream to become fewer.
    ForStream,
    /// The unacknowledged bytes of all streams to become fewer, or the connection's credit more.
    ForConnection,
    /// MAX_STREAM_DATA.
    ForCredit,
}

/// How much a writer may still hand over.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteRoom {
    /// Unsent bytes a stream may hold.
    pub(super) unsent_limit: u64,
    /// Bytes all streams together may still take.
    pub(super) connection: u64,
    /// The connection's credit that no unsent byte of any stream has a claim on.
    pub(super) credit: u64,
}

/// State, bytes and credit of the sending part.
#[derive(Debug, Default)]
pub(super) struct SendPart {
    state: State,
    buffer: SendBuffer,
    limit: SendLimit,
    /// The peer sent STOP_SENDING with this code.
    stopped: Option<u64>,
    waiting: Waiting,
}

impl SendPart {
    /// Begins a new stream in the memory of an old one.
    pub(super) fn begin(&mut self, limit: u64) {
        self.state = State::Ready;
        self.limit = SendLimit::new(limit);
        (self.stopped, self.waiting) = (None, Waiting::No);
    }

    /// Frees what an ended stream holds.
    pub(super) fn recycle(&mut self, buffers: &mut Buffers) {
        self.buffer.recycle(buffers);
    }

    /// True in the terminal states.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.state, State::DataRecvd | State::ResetRecvd)
    }

    /// True while the end or a reset waits for its acknowledgement.
    pub(super) const fn is_pending(&self) -> bool {
        match self.state {
            State::Ready | State::Send => self.buffer.is_finished(),
            State::DataSent | State::ResetSent(_) => true,
            State::DataRecvd | State::ResetRecvd => false,
        }
    }

    /// The code of the peer's STOP_SENDING.
    pub(super) const fn stopped(&self) -> Option<u64> {
        self.stopped
    }

    /// Bytes kept until acknowledged.
    #[inline]
    pub(super) const fn retained(&self) -> u64 {
        self.buffer.retained()
    }

    /// Takes bytes from the application; returns how many.
    pub(super) fn write(
        &mut self,
        data: &[u8],
        room: WriteRoom,
        buffers: &mut Buffers,
    ) -> Result<usize, WriteError> {
        let len = self.admit(data.len(), room)?;
        self.buffer.write(&data[..len], buffers);
        Ok(len)
    }

    /// Takes bytes from the application without copying them; returns how many.
    pub(super) fn write_shared(
        &mut self,
        data: &mut Bytes,
        room: WriteRoom,
        buffers: &mut Buffers,
    ) -> Result<usize, WriteError> {
        let len = self.admit(data.len(), room)?;
        self.buffer.write_shared(data.split_to(len), buffers);
        Ok(len)
    }

    /// How much of `len` bytes may be written now.
    fn admit(&mut self, len: usize, room: WriteRoom) -> Result<usize, WriteError> {
        if let Some(code) = self.stopped {
            return Err(WriteError::Stopped(code));
        }
        if self.buffer.is_finished() || !matches!(self.state, State::Ready | State::Send) {
            return Err(WriteError::ClosedStream);
        }
        let unsent = self.buffer.unsent();
        let covered = self.covered(room).max(AHEAD.saturating_sub(unsent));
        let ahead = covered.min(room.unsent_limit.saturating_sub(unsent));
        let len = ahead.min(room.connection).min(len as u64);
        if len == 0 && (ahead == 0 || room.connection == 0) {
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

    /// Bytes that could be written for which the peer has granted credit.
    #[inline]
    fn covered(&self, room: WriteRoom) -> u64 {
        let own = self.limit.available().saturating_sub(self.buffer.unsent());
        own.min(room.credit)
    }

    /// True when what is written behind `ahead` further bytes could also be sent as far as credit
    /// goes, or will never be. Otherwise the writer waits as if a write had been refused, unless it
    /// has these bytes to write first.
    pub(super) fn is_worth_writing(&mut self, ahead: u64, room: WriteRoom) -> bool {
        let is_open = matches!(self.state, State::Ready | State::Send);
        if !is_open || self.covered(room).min(room.connection) > ahead {
            return true;
        }
        if ahead > 0 {
            return false;
        }
        self.waiting = if self.limit.available() <= self.buffer.unsent() {
            Waiting::ForCredit
        } else {
            Waiting::ForConnection
        };
        false
    }

    /// True while a writer waits for credit of this stream.
    pub(super) fn is_waiting_for_credit(&self) -> bool {
        self.waiting == Waiting::ForCredit
    }

    /// True once when credit of this stream has come for a writer that waits for it.
    pub(super) fn take_credited(&mut self) -> bool {
        let is_over = self.is_waiting_for_credit() && self.limit.available() > self.buffer.unsent();
        if is_over {
            self.waiting = Waiting::No;
        }
        is_over
    }

    /// Bytes never sent.
    #[inline]
    pub(super) const fn unsent(&self) -> u64 {
        self.buffer.unsent()
    }

    /// True when the last write was refused for the sake of the whole connection.
    pub(super) fn is_waiting_for_connection(&self) -> bool {
        self.waiting == Waiting::ForConnection
    }

    /// True once when a refused writer may try again: so much was sent that it is worth it.
    #[inline]
    pub(super) fn take_writable(&mut self, unsent_limit: u64) -> bool {
        if self.waiting != Waiting::ForStream || self.buffer.unsent() > unsent_limit / 2 {
            return false;
        }
        self.waiting = Waiting::No;
        true
    }

    /// True once when a writer refused for the sake of the connection may try again.
    pub(super) fn take_connection_writable(&mut self) -> bool {
        let waited = self.waiting == Waiting::ForConnection;
        if waited {
            self.waiting = Waiting::No;
        }
        waited
    }

    /// The application has written everything.
    pub(super) fn finish(&mut self) -> Result<(), FinishError> {
        if let Some(code) = self.stopped {
            return Err(FinishError::Stopped(code));
        }
        if self.buffer.is_finished() || !matches!(self.state, State::Ready | State::Send) {
            return Err(FinishError::ClosedStream);
        }
        self.buffer.finish();
        // A write that was refused before will not be tried again.
        self.waiting = Waiting::No;
        Ok(())
    }

    /// The application gives the stream up; true when RESET_STREAM is due.
    pub(super) fn reset(&mut self, code: u64, buffers: &mut Buffers) -> Result<bool, ClosedStream> {
        match self.state {
            State::Ready | State::Send | State::DataSent => {
                self.enter_reset(code, buffers);
                Ok(true)
            }
            // STOP_SENDING was faster; the stream is reset, which is all that was asked.
            State::ResetSent(_) | State::ResetRecvd if self.stopped.is_some() => Ok(false),
            State::ResetSent(_) | State::ResetRecvd | State::DataRecvd => Err(ClosedStream),
        }
    }

    /// True when the application has said that it wrote everything.
    pub(super) const fn is_finished(&self) -> bool {
        self.buffer.is_finished()
    }

    /// STOP_SENDING arrived; true when RESET_STREAM answers it (RFC 9000 §3.5), with the code
    /// of the peer.
    pub(super) fn on_stop_sending(&mut self, code: u64, buffers: &mut Buffers) -> bool {
        match self.state {
            State::Ready | State::Send | State::DataSent => {
                self.stopped = Some(code);
                self.enter_reset(code, buffers);
                true
            }
            State::DataRecvd | State::ResetSent(_) | State::ResetRecvd => false,
        }
    }

    fn enter_reset(&mut self, code: u64, buffers: &mut Buffers) {
        self.state = State::ResetSent(Reset {
            code,
            final_size: self.buffer.sent(),
        });
        self.buffer.discard(buffers);
        self.waiting = Waiting::No;
    }

    /// What RESET_STREAM has to say, until it is acknowledged.
    pub(super) const fn reset_to_send(&self) -> Option<Reset> {
        match self.state {
            State::ResetSent(reset) => Some(reset),
            _ => None,
        }
    }

    /// RESET_STREAM is acknowledged; true when that ends the stream.
    pub(super) fn on_reset_acked(&mut self) -> bool {
        let ends = matches!(self.state, State::ResetSent(_));
        if ends {
            self.state = State::ResetRecvd;
        }
        ends
    }

    /// The peer allows data up to `limit`; true when that is more than before.
    pub(super) fn on_max_stream_data(&mut self, limit: u64) -> bool {
        self.limit.raise(limit)
    }

    /// True when data could be sent for the first time, as far as this stream's limit goes.
    #[inline]
    pub(super) fn has_new(&self) -> bool {
        self.buffer.unsent() > 0 && self.limit.available() > 0
    }

    /// True when a frame could be sent that needs no credit: a lost span or a bare FIN.
    #[inline]
    pub(super) fn has_free(&self) -> bool {
        (self.buffer.has_lost() || self.buffer.is_fin_due())
            && matches!(self.state, State::Ready | State::Send | State::DataSent)
    }

    /// Bytes never sent, and not to be repeated either; `None` when something is to be repeated.
    #[inline]
    pub(super) fn only_unsent(&self) -> Option<u64> {
        (!self.buffer.has_lost()).then_some(self.buffer.unsent())
    }

    /// True once per limit, when it keeps data back: STREAM_DATA_BLOCKED is due.
    #[inline]
    pub(super) fn take_blocked(&mut self) -> bool {
        self.has_more() && self.limit.take_signal()
    }

    /// More is to be sent than was, or somebody would write it.
    #[inline]
    fn has_more(&self) -> bool {
        self.buffer.unsent() > 0 || self.is_waiting_for_credit()
    }

    /// What STREAM_DATA_BLOCKED has to say, while it is true.
    pub(super) fn blocked_at(&self) -> Option<u64> {
        let is_blocked = self.has_more() && self.limit.available() == 0;
        is_blocked.then_some(self.limit.limit())
    }

    /// STREAM_DATA_BLOCKED with this limit was acknowledged.
    pub(super) fn on_blocked_heard(&mut self, limit: u64) {
        self.limit.on_blocked_heard(limit);
    }

    /// True when the peer knows that the limit of today keeps data back.
    pub(super) fn is_blocked_heard(&self) -> bool {
        self.limit.is_heard()
    }

    /// STREAM_DATA_BLOCKED is lost or is to be repeated.
    pub(super) fn forget_blocked(&mut self) {
        self.limit.forget_signal();
    }

    /// Sending STREAM_DATA_BLOCKED counts as sending (RFC 9000 §3.1).
    pub(super) fn on_blocked_sent(&mut self) {
        if self.state == State::Ready {
            self.state = State::Send;
        }
    }

    /// Writes a frame with bytes never sent, at most `credit` of them.
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
        self.state = if self.buffer.is_all_sent() {
            State::DataSent
        } else {
            State::Send
        };
        Some(span)
    }

    /// Writes a frame with bytes that were lost, or a FIN that has nothing before it to wait
    /// for.
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
        fit.write_header(id, span, packet);
        self.buffer
            .send_lost(span, packet.writer().advance_with(fit.len));
        record(id, span, packet);
        Some(span)
    }

    /// The peer has this span; true when that was the last one.
    #[inline]
    pub(super) fn on_acked(&mut self, span: Span, buffers: &mut Buffers) -> bool {
        match self.state {
            State::Send | State::DataSent => self.buffer.on_acked(span, buffers),
            // What a reset gave up does not matter any more.
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

    /// The packet with this span is lost.
    pub(super) fn on_lost(&mut self, span: Span) {
        // After a reset nothing is repeated but the reset (RFC 9000 §3.3).
        if matches!(self.state, State::Send | State::DataSent) {
            self.buffer.on_lost(span);
        }
    }
}

fn record(id: StreamId, span: Span, packet: &mut PacketBuilder<'_>) {
    let len = u16::try_from(span.len).expect("bounded by Fit::of");
    packet.record(SentFrame::Stream {
        id,
        offset: span.offset,
        len,
        fin: span.fin,
    });
}

/// How much data a STREAM frame takes into the rest of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Fit {
    len: usize,
    /// Without a LEN field the frame extends to the end of the packet, which it fills.
    has_len: bool,
}

impl Fit {
    /// `None` when no useful frame fits into `room` bytes.
    #[inline]
    fn of(room: usize, id: StreamId, offset: u64, available: u64) -> Option<Self> {
        let available = usize::try_from(available).unwrap_or(LONGEST).min(LONGEST);
        let space = room.checked_sub(frame::Stream::header_len(id, offset, None))?;
        if available > space && space < WORTHWHILE {
            return None;
        }
        if available >= space && space <= LONGEST {
            return Some(Self {
                len: space,
                has_len: false,
            });
        }
        // With the data a LEN field may just not fit any more; then a little waits.
        let len_field = varint_len(available as u64);
        let len = available.min(space.checked_sub(len_field)?);
        (len == available || len > 0).then_some(Self { len, has_len: true })
    }

    #[inline]
    fn write_header(self, id: StreamId, span: Span, packet: &mut PacketBuilder<'_>) {
        let len = self.has_len.then_some(self.len);
        frame::Stream::encode_header(packet.writer(), id, span.offset, len, span.fin);
    }
}

/// A record counts bytes of a span in 16 bits.
const LONGEST: usize = u16::MAX as usize;
/// A frame with less data is not worth its header while more is waiting.
const WORTHWHILE: usize = 16;

/// Bytes of one stream that may be written without any credit (limit K80): the head of an answer or
/// a small one, so that it leaves as soon as there is credit. It is all that is kept of an answer
/// for a peer that grants none (attack A88).
pub(super) const AHEAD: u64 = 512;

#[cfg(test)]
mod tests;
