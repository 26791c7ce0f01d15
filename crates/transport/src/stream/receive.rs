//! The receiving part of a stream. RFC 9000 §3.2.

use std::time::Duration;

use bytes::Bytes;
use courser_base::Time;
use courser_wire::{MAX_VARINT, frame};

use super::buffers::Buffers;
use super::config::{StreamsConfig, max_gaps};
use super::event::{ClosedStream, ReadError, Stored};
use super::reassembler::Reassembler;
use super::stats::RecvStreamStats;
use crate::error::TransportError;
use crate::flow::{ConnectionFlow, ReceiveWindow};

/// Receiving part of a stream, RFC 9000 §3.2 figure 3.
///
/// ```text
///  Recv --FIN--> SizeKnown --all data--> DataRecvd --read to the end, or stopped--> DataRead
///    |               |
///    +-RESET_STREAM--+--> ResetRecvd --reported, or stopped--> ResetRead
///    |               |        ^
///    +-RESET_STREAM_AT--> ResetAt --read up to the reliable size
/// ```
///
/// In `ResetAt` the bytes below the reliable size can be read as they arrive, and then the reset is
/// reported (draft-ietf-quic-reliable-stream-reset-10 §5.3 calls it "Size Known").
///
/// After [`ReceivePart::stop`] the application reads no more: then a reset counts as read when it arrives, and
/// the stream has ended when the final size is known and STOP_SENDING was acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Recv,
    SizeKnown(FinalSize),
    DataRecvd(FinalSize),
    DataRead(FinalSize),
    /// With the error code and the reliable size.
    ResetAt(FinalSize, u64, u64),
    ResetRecvd(FinalSize, u64),
    ResetRead(FinalSize, u64),
}

/// Number of bytes in a stream, from FIN or RESET_STREAM. RFC 9000 §4.5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FinalSize(u64);

impl State {
    const fn final_size(self) -> Option<FinalSize> {
        match self {
            Self::Recv => None,
            Self::SizeKnown(size)
            | Self::DataRecvd(size)
            | Self::DataRead(size)
            | Self::ResetAt(size, ..)
            | Self::ResetRecvd(size, _)
            | Self::ResetRead(size, _) => Some(size),
        }
    }
}

/// The state of STOP_SENDING, with its error code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stop {
    #[default]
    No,
    Queued(u64),
    InFlight(u64),
    Acked,
}

/// The limits that a new stream grants the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReceiveLimits {
    window: u64,
    /// Maximum to which the window may grow.
    window_max: u64,
    /// Gaps allowed while the window is small.
    max_gaps: usize,
}

impl ReceiveLimits {
    pub(super) fn new(config: &StreamsConfig) -> Self {
        Self {
            window: config.stream_receive_window,
            window_max: config.stream_receive_window_max,
            max_gaps: config.max_gaps_per_stream,
        }
    }
}

/// State, bytes and credit of the receiving part.
#[derive(Debug)]
pub(super) struct ReceivePart {
    state: State,
    stop: Stop,
    reassembler: Reassembler,
    window: ReceiveWindow,
    max_gaps: usize,
    /// True if a read returned [`ReadError::Blocked`] and the application waits for an event.
    is_reader_waiting: bool,
    /// True once the application has read without order.
    is_unordered: bool,
}

impl Default for ReceivePart {
    fn default() -> Self {
        Self {
            state: State::Recv,
            stop: Stop::No,
            reassembler: Reassembler::default(),
            window: ReceiveWindow::new(0, 0),
            max_gaps: 0,
            is_reader_waiting: false,
            is_unordered: false,
        }
    }
}

impl ReceivePart {
    /// Returns the memory held for received bytes.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.reassembler.memory()
    }

    /// Begins a new stream in the memory of a previous one.
    pub(super) fn begin(&mut self, limits: ReceiveLimits) {
        self.max_gaps = limits.max_gaps;
        (self.state, self.stop, self.is_reader_waiting) = (State::Recv, Stop::No, false);
        self.is_unordered = false;
        self.window = ReceiveWindow::new(limits.window, limits.window_max);
    }

    /// Frees spare capacity.
    pub(super) fn shrink(&mut self) {
        self.reassembler.shrink();
    }

    /// Frees the contents of an ended stream.
    pub(super) fn recycle(&mut self, buffers: &mut Buffers) {
        self.reassembler.recycle(buffers);
    }

    /// Returns true in the terminal states, `DataRead` and `ResetRead`.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.state, State::DataRead(_) | State::ResetRead(..))
    }

    /// Returns true if content is missing and the application has not stopped reading.
    pub(super) const fn awaits_content(&self) -> bool {
        matches!(
            self.state,
            State::Recv | State::SizeKnown(_) | State::ResetAt(..)
        ) && matches!(self.stop, Stop::No)
    }

    /// Returns true if only the end is left to read.
    pub(super) const fn is_read_through(&self) -> bool {
        matches!(self.state, State::DataRecvd(_)) && self.reassembler.readable() == 0
    }

    /// Returns true if the peer reset the stream.
    pub(super) const fn was_reset(&self) -> bool {
        matches!(self.state, State::ResetRecvd(..) | State::ResetRead(..))
    }

    /// Returns the number of gaps below the largest received byte.
    #[inline]
    pub(super) const fn gaps(&self) -> usize {
        self.reassembler.gaps()
    }

    /// Returns the progress for the application.
    pub(super) fn stats(&self) -> RecvStreamStats {
        RecvStreamStats {
            received: self.window.received(),
            read: self.window.received() - self.window.unconsumed(),
            gaps: self.gaps(),
            limit: self.window.limit(),
            final_size: self.state.final_size().map(|size| size.0),
        }
    }

    /// Processes a STREAM frame.
    ///
    /// # Errors
    ///
    /// FRAME_ENCODING_ERROR past the largest offset (RFC 9000 §19.8), FINAL_SIZE_ERROR for bytes
    /// past the end or an end that moves (§4.5), FLOW_CONTROL_ERROR past a limit (§4.1).
    #[inline]
    pub(super) fn on_stream(
        &mut self,
        now: Time,
        frame: &frame::Stream<'_>,
        connection: &mut ReceiveWindow,
        buffers: &mut Buffers,
    ) -> Result<Stored, TransportError> {
        let end = frame.offset.saturating_add(frame.data.len() as u64);
        if frame.fin || self.state != State::Recv || end > MAX_VARINT {
            self.check_end(end, frame.fin)?;
            match self.state {
                State::Recv | State::SizeKnown(_) => {}
                State::ResetAt(_, _, reliable) => {
                    return Ok(self.on_reliable_data(now, frame, reliable, connection, buffers));
                }
                _ => return Ok(Stored::Kept),
            }
        }
        let additional = end.saturating_sub(self.window.received());
        if additional > 0 {
            self.window.check(additional)?;
            connection.check(additional)?;
        }
        let readable = self.reassembler.readable();
        if self.stop == Stop::No {
            let may_open_gap = self.may_open_gap(connection, buffers);
            let stored = self
                .reassembler
                .insert(frame.offset, frame.data, may_open_gap, buffers);
            if stored == Stored::Refused {
                return Ok(stored);
            }
        }
        if additional > 0 {
            self.window.on_received(now, additional);
            connection.on_received(now, additional);
        }
        let (len, ordered) = (
            frame.data.len() as u64,
            self.reassembler.readable() - readable,
        );
        self.window.on_arrived(now, len, ordered);
        connection.on_arrived(now, len, ordered);
        self.on_stored(end, frame.fin, connection, buffers);
        Ok(Stored::Kept)
    }

    /// Returns true if the stream and the connection may have one more gap.
    #[inline]
    fn may_open_gap(&self, connection: &ReceiveWindow, buffers: &Buffers) -> bool {
        let of_stream = max_gaps(self.max_gaps, self.window.size());
        self.gaps() < of_stream && buffers.may_open_gap(connection.size())
    }

    /// Returns a number that grows with each STREAM frame that contains new bytes or the end for the first
    /// time.
    #[inline]
    pub(super) fn progress(&self) -> u64 {
        let has_end = u64::from(self.state != State::Recv);
        self.reassembler.stored() + self.window.received() + has_end
    }

    /// Checks the end of a frame against the known size of the stream.
    fn check_end(&self, end: u64, fin: bool) -> Result<(), TransportError> {
        if end > MAX_VARINT {
            return Err(TransportError::frame_encoding(
                "stream data ends above 2^62 - 1",
            ));
        }
        let received = self.window.received();
        match self.state.final_size() {
            Some(FinalSize(size)) if end > size => Err(TransportError::final_size(format!(
                "data up to {end} exceeds final size {size}"
            ))),
            Some(FinalSize(size)) if fin && end != size => Err(TransportError::final_size(
                format!("final size changed from {size} to {end}"),
            )),
            None if fin && end < received => Err(TransportError::final_size(format!(
                "final size {end} is below the {received} bytes received"
            ))),
            _ => Ok(()),
        }
    }

    #[inline]
    fn on_stored(
        &mut self,
        end: u64,
        fin: bool,
        connection: &mut ReceiveWindow,
        buffers: &mut Buffers,
    ) {
        if fin && self.state == State::Recv {
            self.state = State::SizeKnown(FinalSize(end));
        }
        if self.stop != Stop::No {
            self.discard(connection, buffers);
            self.end_if_stopped();
            return;
        }
        if let State::SizeKnown(size) = self.state
            && self.reassembler.end() == size.0
        {
            self.state = State::DataRecvd(size);
        }
    }

    /// Processes a RESET_STREAM frame.
    ///
    /// # Errors
    ///
    /// FINAL_SIZE_ERROR and FLOW_CONTROL_ERROR as for the same bytes in STREAM frames.
    pub(super) fn on_reset(
        &mut self,
        now: Time,
        frame: frame::ResetStream,
        connection: &mut ReceiveWindow,
        buffers: &mut Buffers,
    ) -> Result<(), TransportError> {
        let end = frame.final_size;
        if matches!(self.state, State::ResetAt(..)) {
            self.check_code(frame.error_code)?;
        }
        self.check_end(end, true)?;
        let additional = end.saturating_sub(self.window.received());
        self.window.check(additional)?;
        connection.check(additional)?;
        match self.state {
            State::Recv | State::SizeKnown(_) | State::ResetAt(..) => {}
            // All data has arrived: the reset comes too late to discard it (RFC 9000 §3.2).
            State::DataRecvd(_)
            | State::DataRead(_)
            | State::ResetRecvd(..)
            | State::ResetRead(..) => return Ok(()),
        }
        // The peer counts the final size against the limit, so we must too (RFC 9000 §4.5).
        self.window.on_received(now, additional);
        connection.on_received(now, additional);
        self.discard(connection, buffers);
        let size = FinalSize(end);
        self.state = match self.stop {
            Stop::No => State::ResetRecvd(size, frame.error_code),
            _ => State::ResetRead(size, frame.error_code),
        };
        Ok(())
    }

    /// Processes a RESET_STREAM_AT frame whose reliable size is at most its final size.
    ///
    /// # Errors
    ///
    /// FINAL_SIZE_ERROR and FLOW_CONTROL_ERROR as for the same bytes in STREAM frames, and
    /// STREAM_STATE_ERROR if the error code differs from an earlier one
    /// (draft-ietf-quic-reliable-stream-reset-10 §5.2).
    pub(super) fn on_reset_at(
        &mut self,
        now: Time,
        frame: frame::ResetStreamAt,
        connection: &mut ReceiveWindow,
        buffers: &mut Buffers,
    ) -> Result<(), TransportError> {
        let size = FinalSize(frame.final_size);
        self.check_code(frame.error_code)?;
        if let State::ResetAt(known, code, reliable) = self.state {
            self.check_end(frame.final_size, true)?;
            let reliable = reliable.min(frame.reliable_size);
            self.state = State::ResetAt(known, code, reliable);
            self.reset_if_delivered(connection, buffers);
            return Ok(());
        }
        let is_open = matches!(self.state, State::Recv | State::SizeKnown(_));
        if !is_open || self.stop != Stop::No || frame.reliable_size <= self.reassembler.read_to() {
            let reset = frame::ResetStream {
                id: frame.id,
                error_code: frame.error_code,
                final_size: frame.final_size,
            };
            return self.on_reset(now, reset, connection, buffers);
        }
        self.check_end(frame.final_size, true)?;
        let additional = frame.final_size.saturating_sub(self.window.received());
        self.window.check(additional)?;
        connection.check(additional)?;
        self.window.on_received(now, additional);
        connection.on_received(now, additional);
        self.state = State::ResetAt(size, frame.error_code, frame.reliable_size);
        Ok(())
    }

    /// Checks that the error code of a reset stays the same.
    fn check_code(&self, code: u64) -> Result<(), TransportError> {
        match self.state {
            State::ResetAt(_, known, _)
            | State::ResetRecvd(_, known)
            | State::ResetRead(_, known)
                if known != code =>
            {
                let reason = format!("error code of a reset changed from {known} to {code}");
                Err(TransportError::stream_state(reason))
            }
            _ => Ok(()),
        }
    }

    /// Stores the bytes of a frame below the reliable size. Flow control has counted the final size already.
    fn on_reliable_data(
        &mut self,
        now: Time,
        frame: &frame::Stream<'_>,
        reliable: u64,
        connection: &mut ReceiveWindow,
        buffers: &mut Buffers,
    ) -> Stored {
        let missing = reliable.saturating_sub(frame.offset);
        let len =
            usize::try_from(missing).map_or(frame.data.len(), |len| len.min(frame.data.len()));
        if len == 0 || self.stop != Stop::No {
            return Stored::Kept;
        }
        let readable = self.reassembler.readable();
        let may_open_gap = self.may_open_gap(connection, buffers);
        let data = &frame.data[..len];
        let stored = self
            .reassembler
            .insert(frame.offset, data, may_open_gap, buffers);
        if stored == Stored::Kept {
            let (len, ordered) = (len as u64, self.reassembler.readable() - readable);
            self.window.on_arrived(now, len, ordered);
            connection.on_arrived(now, len, ordered);
        }
        stored
    }

    /// Reports the reset once the application has read up to the reliable size.
    #[inline]
    fn reset_if_delivered(&mut self, connection: &mut ReceiveWindow, buffers: &mut Buffers) {
        if let State::ResetAt(size, code, reliable) = self.state
            && self.reassembler.read_to() >= reliable
        {
            self.discard(connection, buffers);
            self.state = State::ResetRecvd(size, code);
        }
    }

    /// Drops the unread bytes and credits them to the connection.
    fn discard(&mut self, connection: &mut ReceiveWindow, buffers: &mut Buffers) {
        self.reassembler.discard(buffers);
        let (len, readable) = (self.window.unconsumed(), self.window.readable());
        self.window.on_discarded(len, readable);
        connection.on_discarded(len, readable);
    }

    /// Stops reading for the application. Returns true if STOP_SENDING is due.
    pub(super) fn stop(
        &mut self,
        code: u64,
        connection: &mut ReceiveWindow,
        buffers: &mut Buffers,
    ) -> Result<bool, ClosedStream> {
        if self.stop != Stop::No || self.is_over() {
            return Err(ClosedStream);
        }
        self.discard(connection, buffers);
        match self.state {
            State::Recv | State::SizeKnown(_) | State::ResetAt(..) => {
                self.stop = Stop::Queued(code);
                Ok(true)
            }
            // Nothing is left for the peer to stop (RFC 9000 §3.5).
            State::DataRecvd(size) | State::DataRead(size) => {
                self.state = State::DataRead(size);
                Ok(false)
            }
            State::ResetRecvd(size, code) | State::ResetRead(size, code) => {
                self.state = State::ResetRead(size, code);
                Ok(false)
            }
        }
    }

    /// Returns the code for STOP_SENDING, as long as that frame is useful (RFC 9000 §3.3).
    pub(super) const fn stop_to_send(&self) -> Option<u64> {
        match (self.state, self.stop) {
            (State::Recv | State::SizeKnown(_) | State::ResetAt(..), Stop::Queued(code)) => {
                Some(code)
            }
            _ => None,
        }
    }

    /// Records that STOP_SENDING was written.
    pub(super) fn on_stop_sent(&mut self) {
        if let Stop::Queued(code) = self.stop {
            self.stop = Stop::InFlight(code);
        }
    }

    /// Processes the acknowledgement of STOP_SENDING.
    pub(super) fn on_stop_acked(&mut self) {
        if self.stop != Stop::No {
            self.stop = Stop::Acked;
            self.end_if_stopped();
        }
    }

    /// Processes the loss of STOP_SENDING. Returns true if it is due again.
    pub(super) fn on_stop_lost(&mut self) -> bool {
        if let Stop::InFlight(code) = self.stop {
            self.stop = Stop::Queued(code);
        }
        self.stop_to_send().is_some()
    }

    /// Ends a stopped stream once we know the final size and the peer has received STOP_SENDING.
    fn end_if_stopped(&mut self) {
        match (self.state, self.stop) {
            (State::SizeKnown(size), Stop::Acked) => self.state = State::DataRead(size),
            (State::ResetAt(size, code, _), Stop::Acked) => {
                self.state = State::ResetRead(size, code);
            }
            _ => {}
        }
    }

    /// Copies bytes to the application. Returns `None` at the end of the stream.
    #[inline]
    pub(super) fn read(
        &mut self,
        out: &mut [u8],
        connection: &mut ReceiveWindow,
        buffers: &mut Buffers,
    ) -> Result<Option<usize>, ReadError> {
        if self.stop != Stop::No || self.is_unordered || self.reassembler.readable() == 0 {
            return self.read_nothing_ordered().map(|()| None);
        }
        let len = self.reassembler.read(out, buffers);
        self.on_read(len, connection, buffers);
        Ok(Some(len))
    }

    /// Returns bytes to the application; `None` at the end of the stream.
    pub(super) fn read_chunk(
        &mut self,
        max: usize,
        connection: &mut ReceiveWindow,
        buffers: &mut Buffers,
    ) -> Result<Option<Bytes>, ReadError> {
        if self.stop != Stop::No || self.is_unordered || self.reassembler.readable() == 0 {
            return self.read_nothing_ordered().map(|()| None);
        }
        let bytes = self
            .reassembler
            .read_chunk(max, buffers)
            .unwrap_or_default();
        self.on_read(bytes.len(), connection, buffers);
        Ok(Some(bytes))
    }

    /// Returns bytes to the application with their offset, in any order; `None` at the end of the stream,
    /// when all bytes were read.
    pub(super) fn read_unordered(
        &mut self,
        max: usize,
        connection: &mut ReceiveWindow,
        buffers: &mut Buffers,
    ) -> Result<Option<(u64, Bytes)>, ReadError> {
        self.is_unordered = true;
        if self.stop != Stop::No {
            return Err(ReadError::ClosedStream);
        }
        let Some(piece) = self.reassembler.read_unordered(max, buffers) else {
            return self.read_nothing().map(|()| None);
        };
        let len = piece.bytes.len() as u64;
        // Bytes past a gap do not count as readable when they arrive.
        let readable = if piece.is_ordered { len } else { 0 };
        self.window.on_discarded(len, readable);
        connection.on_discarded(len, readable);
        self.reset_if_delivered(connection, buffers);
        Ok(Some((piece.offset, piece.bytes)))
    }

    #[inline]
    fn on_read(&mut self, len: usize, connection: &mut ReceiveWindow, buffers: &mut Buffers) {
        self.window.on_consumed(len as u64);
        connection.on_consumed(len as u64);
        self.reset_if_delivered(connection, buffers);
    }

    /// Returns true if the peer has reset the stream and the reset was not reported yet. In any
    /// case the reader is notified when anything arrives next.
    pub(super) fn await_data_or_reset(&mut self) -> bool {
        self.is_reader_waiting = true;
        matches!(self.state, State::ResetRecvd(..))
    }

    /// Returns true if all bytes up to the end have arrived, or the stream has ended: no reset can follow.
    pub(super) const fn has_everything(&self) -> bool {
        matches!(
            self.state,
            State::DataRecvd(_) | State::DataRead(_) | State::ResetRead(..)
        )
    }

    /// Withholds the credit for bytes that were read.
    pub(super) fn hold_credit(&mut self, len: u64) {
        self.window.hold(len);
    }

    /// Grants the withheld credit for bytes.
    pub(super) fn release_credit(&mut self, len: u64) {
        self.window.release(len);
    }

    /// Reads the end for the application, if all bytes before it were read.
    pub(super) fn take_end(&mut self) -> bool {
        self.is_read_through() && self.read_nothing().is_ok()
    }

    /// Returns the reason why there is nothing to read in order; `Ok` at the end of the stream.
    fn read_nothing_ordered(&mut self) -> Result<(), ReadError> {
        if self.is_unordered && self.stop == Stop::No {
            return Err(ReadError::Unordered);
        }
        self.read_nothing()
    }

    /// Returns the reason why there is nothing to read; `Ok` at the end of the stream.
    fn read_nothing(&mut self) -> Result<(), ReadError> {
        if self.stop != Stop::No {
            return Err(ReadError::ClosedStream);
        }
        match self.state {
            State::Recv | State::SizeKnown(_) | State::ResetAt(..) => {
                self.is_reader_waiting = true;
                Err(ReadError::Blocked)
            }
            State::DataRecvd(size) | State::DataRead(size) => {
                self.state = State::DataRead(size);
                Ok(())
            }
            State::ResetRecvd(size, code) | State::ResetRead(size, code) => {
                self.state = State::ResetRead(size, code);
                Err(ReadError::Reset(code))
            }
        }
    }

    /// Returns true once when a blocked reader may try again.
    #[inline]
    pub(super) fn take_readable(&mut self) -> bool {
        let is_due = self.is_reader_waiting
            && (self.reassembler.readable() > 0
                || self.is_unordered && self.reassembler.has_unread()
                || matches!(self.state, State::DataRecvd(_) | State::ResetRecvd(..)));
        if is_due {
            self.is_reader_waiting = false;
        }
        is_due
    }

    /// Returns true if MAX_STREAM_DATA is due: enough of the window is used, and more data can
    /// arrive.
    #[inline]
    pub(super) fn is_credit_due(&self) -> bool {
        self.can_use_credit() && self.window.is_update_due()
    }

    /// Returns true while the peer can make use of MAX_STREAM_DATA (RFC 9000 §3.3).
    #[inline]
    pub(super) fn can_use_credit(&self) -> bool {
        self.state == State::Recv && self.stop == Stop::No
    }

    /// Returns true if the peer reports `known` as its limit, and the limit has to be sent again because it
    /// must have been lost.
    pub(super) fn is_limit_overdue(&self, now: Time, rtt: Duration, known: u64) -> bool {
        self.can_use_credit() && self.window.is_limit_overdue(now, rtt, known)
    }

    /// Processes the acknowledgement of MAX_STREAM_DATA with this limit.
    pub(super) fn on_limit_acked(&mut self, limit: u64) {
        self.window.on_limit_acked(limit);
    }

    /// Returns true if the peer can use credit and the latest limit was not acknowledged.
    pub(super) fn lacks_credit(&self) -> bool {
        self.can_use_credit() && !self.window.is_limit_acked()
    }

    /// Returns true once the application has stopped reading.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop != Stop::No
    }

    /// Returns the limit for MAX_STREAM_DATA now, if that frame is useful. `connection` bounds the growth of the window.
    pub(super) fn credit_to_send(
        &mut self,
        now: Time,
        rtt: Duration,
        connection: &mut ConnectionFlow,
    ) -> Option<u64> {
        let bound = |before, size| connection.grow_stream(now, before, size);
        self.can_use_credit()
            .then(|| self.window.announce_within(now, rtt, bound))
    }

    /// Returns the bytes by which the window has grown since the [beginning](Self::begin).
    pub(super) fn window_growth(&self, limits: ReceiveLimits) -> u64 {
        self.window.size() - limits.window
    }
}

#[cfg(test)]
mod tests;
