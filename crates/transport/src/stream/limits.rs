//! Limits on the number of streams, in both directions. RFC 9000 §4.6.

mod local;
mod peer;

use std::time::Duration;

use courser_base::{Side, Time};
use courser_wire::frame::{MaxStreams, StreamsBlocked};
use courser_wire::{Direction, StreamId};

use self::local::LocalStreams;
use self::peer::PeerStreams;
pub(super) use self::peer::Use;
use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;
use crate::flow::fits_control_frame;
use crate::space::sent::SentFrame;

/// The numbers of streams that both ends may open and have opened, and the frames about these limits:
/// MAX_STREAMS and STREAMS_BLOCKED.
#[derive(Debug)]
pub(super) struct StreamLimits {
    side: Side,
    /// Streams that we open, by [`index`] of their direction.
    local: [LocalStreams; 2],
    /// Streams that the peer opens, by [`index`] of their direction.
    peer: [PeerStreams; 2],
    /// Streams opened before the handshake was complete, while early data was possible, by
    /// [`index`] of their direction.
    early: [u64; 2],
    /// Frames to send: bits of [`LimitFrame::bit`].
    due: u8,
    /// True once the connection is over, and no frame can be sent.
    is_over: bool,
}

/// A frame about the number of streams of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LimitFrame {
    MaxStreams = 1,
    StreamsBlocked = 4,
}

impl LimitFrame {
    const fn bit(self, direction: Direction) -> u8 {
        (self as u8) << index(direction)
    }
}

impl StreamLimits {
    /// Allows the peer as many streams at a time as our transport parameters announce. Until the peer's
    /// parameters arrive, we may open none.
    pub(super) fn new(side: Side, max_bidi: u64, max_uni: u64) -> Self {
        Self {
            side,
            local: Default::default(),
            peer: [PeerStreams::new(max_bidi), PeerStreams::new(max_uni)],
            early: [0; 2],
            due: 0,
            is_over: false,
        }
    }

    /// Opens a stream. Requests STREAMS_BLOCKED and returns `None` at the peer's limit.
    pub(super) fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let local = &mut self.local[index(direction)];
        let Some(number) = local.open() else {
            self.signal_blocked(direction);
            return None;
        };
        Some(StreamId::new(self.side, direction, number))
    }

    /// Returns the next stream that the peer opened, in order, and whether its state has to be created.
    pub(super) fn accept(&mut self, direction: Direction) -> Option<(StreamId, Use)> {
        let (number, usage) = self.peer[index(direction)].accept()?;
        Some((StreamId::new(self.side.peer(), direction, number), usage))
    }

    /// Returns true once if the peer has opened streams and the application waits for them.
    pub(super) fn take_opened(&mut self, direction: Direction) -> bool {
        self.peer[index(direction)].take_opened()
    }

    /// Processes a frame for a stream without state: the stream has ended, or the peer opens it.
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR for a stream that we have not opened, STREAM_LIMIT_ERROR past the limit of
    /// the peer.
    pub(super) fn on_use(&mut self, id: StreamId) -> Result<Use, TransportError> {
        let (direction, number) = (id.direction(), id.index());
        if id.initiator() == self.side {
            if self.local[index(direction)].was_opened(number) {
                return Ok(Use::Known);
            }
            return Err(TransportError::stream_state(format!(
                "we have not opened stream {id}"
            )));
        }
        let usage = self.peer[index(direction)].on_use(number)?;
        self.update_max_streams(direction);
        Ok(usage)
    }

    /// Counts a stream as ended.
    pub(super) fn on_retired(&mut self, now: Time, id: StreamId, was_cancelled: bool) {
        let direction = id.direction();
        if id.initiator() == self.side {
            return self.local[index(direction)].on_retired();
        }
        self.peer[index(direction)].on_retired(now, was_cancelled);
        self.update_max_streams(direction);
    }

    /// Returns the number of streams of one direction, opened by one side, that are not over.
    pub(super) fn open_count(&self, initiator: Side, direction: Direction) -> u64 {
        if initiator == self.side {
            self.local[index(direction)].count()
        } else {
            self.peer[index(direction)].count()
        }
    }

    /// Returns true while a bidirectional stream that we opened is open.
    #[inline]
    pub(super) const fn has_own_exchanges(&self) -> bool {
        self.local[index(Direction::Bidirectional)].are_open()
    }

    /// Returns the limit announced to the peer.
    pub(super) const fn announced(&self, direction: Direction) -> u64 {
        self.peer[index(direction)].announced()
    }

    /// Changes how many streams the peer may have open at a time. Limits that were
    /// announced stay valid.
    pub(super) fn set_max(&mut self, direction: Direction, count: u64) {
        self.peer[index(direction)].set_window(count);
        self.update_max_streams(direction);
    }

    /// Raises how many streams the peer may have open at a time to at least `count`.
    pub(super) fn raise_max(&mut self, direction: Direction, count: u64) {
        self.peer[index(direction)].raise_window(count);
        self.update_max_streams(direction);
    }

    /// Raises the peer's limit. Returns true if the application waits for it to be raised.
    /// Ignores a limit that is not larger.
    pub(super) fn on_limit(&mut self, direction: Direction, limit: u64) -> bool {
        let local = &mut self.local[index(direction)];
        let is_awaited = local.on_limit(limit);
        if local.blocked_at().is_none() {
            self.due &= !LimitFrame::StreamsBlocked.bit(direction);
        }
        is_awaited
    }

    /// Returns true if a limit is larger than the peer's last one.
    pub(super) fn is_raised_by(&self, direction: Direction, limit: u64) -> bool {
        self.local[index(direction)].limit() < Some(limit)
    }

    /// Returns true while the peer's limit keeps the application from opening a stream.
    pub(super) fn is_blocked(&self) -> bool {
        self.local.iter().any(|local| local.blocked_at().is_some())
    }

    /// Processes STREAMS_BLOCKED, in which the peer reports its limit. Repeats MAX_STREAMS if the
    /// frame that raised the limit must have arrived a round trip ago.
    pub(super) fn on_streams_blocked(&mut self, now: Time, rtt: Duration, frame: StreamsBlocked) {
        if self.peer[index(frame.direction)].is_limit_overdue(now, rtt, frame.limit) {
            self.request(LimitFrame::MaxStreams, frame.direction);
        }
    }

    /// Returns the time at which the peer gets credit for cancelled streams (attack limit K15).
    pub(super) fn next_timeout(&self) -> Option<Time> {
        let [bidi, uni] = &self.peer;
        Time::earliest(bidi.next_timeout(), uni.next_timeout())
    }

    /// Grants the credit that is due for cancelled streams.
    pub(super) fn on_timeout(&mut self, now: Time) {
        for direction in DIRECTIONS {
            self.peer[index(direction)].on_timeout(now);
            self.update_max_streams(direction);
        }
    }

    fn update_max_streams(&mut self, direction: Direction) {
        if self.peer[index(direction)].is_update_due() {
            self.request(LimitFrame::MaxStreams, direction);
        }
    }

    /// Requests STREAMS_BLOCKED, once per limit that keeps the application from opening a stream.
    fn signal_blocked(&mut self, direction: Direction) {
        if self.local[index(direction)].take_signal() {
            self.request(LimitFrame::StreamsBlocked, direction);
        }
    }

    fn request(&mut self, frame: LimitFrame, direction: Direction) {
        if !self.is_over {
            self.due |= frame.bit(direction);
        }
    }

    /// Requests STREAMS_BLOCKED again for each limit that keeps the application from opening a
    /// stream.
    pub(super) fn repeat_blocked(&mut self) {
        for direction in DIRECTIONS {
            self.local[index(direction)].clear_signal();
            self.signal_blocked(direction);
        }
    }

    #[inline]
    pub(super) const fn has_frames_to_send(&self) -> bool {
        self.due != 0
    }

    pub(super) const fn due_frames(&self) -> usize {
        self.due.count_ones() as usize
    }

    /// Writes the frames that are due and fit.
    pub(super) fn write_frames(&mut self, now: Time, packet: &mut PacketBuilder<'_>) {
        for direction in DIRECTIONS {
            if fits_control_frame(packet) && self.take_due(LimitFrame::MaxStreams, direction) {
                let limit = self.peer[index(direction)].announce(now);
                MaxStreams { direction, limit }.encode(packet.writer());
                packet.record(SentFrame::MaxStreams { direction, limit });
            }
            if fits_control_frame(packet)
                && self.take_due(LimitFrame::StreamsBlocked, direction)
                && let Some(limit) = self.local[index(direction)].blocked_at()
            {
                StreamsBlocked { direction, limit }.encode(packet.writer());
                packet.record(SentFrame::StreamsBlocked { direction, limit });
            }
        }
    }

    fn take_due(&mut self, frame: LimitFrame, direction: Direction) -> bool {
        let is_due = self.due & frame.bit(direction) != 0;
        self.due &= !frame.bit(direction);
        is_due
    }

    /// Processes the acknowledgement of MAX_STREAMS with this limit.
    pub(super) fn on_max_streams_acked(&mut self, direction: Direction, limit: u64) {
        self.peer[index(direction)].on_limit_acked(limit);
    }

    /// Processes the loss of MAX_STREAMS, which is repeated unless the latest limit was acknowledged.
    pub(super) fn on_max_streams_lost(&mut self, direction: Direction) {
        if !self.peer[index(direction)].is_limit_acked() {
            self.request(LimitFrame::MaxStreams, direction);
        }
    }

    /// Processes the acknowledgement of STREAMS_BLOCKED with this limit.
    pub(super) fn on_streams_blocked_acked(&mut self, direction: Direction, limit: u64) {
        self.local[index(direction)].on_blocked_acked(limit);
    }

    /// Processes the loss of STREAMS_BLOCKED, which is repeated unless one for the present limit was
    /// acknowledged.
    pub(super) fn on_streams_blocked_lost(&mut self, direction: Direction) {
        let local = &mut self.local[index(direction)];
        if !local.is_blocked_acked() {
            local.clear_signal();
            self.signal_blocked(direction);
        }
    }

    /// Returns true for a stream of the client that was opened before the handshake was complete.
    pub(super) const fn is_early(&self, id: StreamId) -> bool {
        id.initiator().is_client() && id.index() < self.early[index(id.direction())]
    }

    /// Counts streams that are opened from now on as early.
    pub(super) fn on_early_data_begin(&mut self) {
        self.early = [u64::MAX; 2];
    }

    /// Processes the end of the handshake: streams that are opened from now on are not early.
    pub(super) fn on_early_data_end(&mut self) {
        for direction in DIRECTIONS.map(index) {
            let opened = match self.side.is_client() {
                true => self.local[direction].opened(),
                false => self.peer[direction].opened(),
            };
            self.early[direction] = self.early[direction].min(opened);
        }
    }

    /// Removes the streams that we opened, and the limits that were assumed for them (RFC 9001
    /// §4.6.2).
    pub(super) fn on_early_data_rejected(&mut self) {
        self.local = Default::default();
        (self.early, self.due) = ([0; 2], 0);
    }

    /// Removes our own streams when the connection is over. Streams of the peer can still be accepted.
    /// No frame is due any more.
    pub(super) fn on_lost(&mut self) {
        self.local = Default::default();
        (self.due, self.is_over) = (0, true);
    }

    /// Removes all streams when the connection is over.
    pub(super) fn on_close(&mut self) {
        self.on_lost();
        self.peer = [PeerStreams::new(0), PeerStreams::new(0)];
    }
}

const DIRECTIONS: [Direction; 2] = [Direction::Bidirectional, Direction::Unidirectional];

/// Returns the index of a direction in a table of two.
const fn index(direction: Direction) -> usize {
    match direction {
        Direction::Bidirectional => 0,
        Direction::Unidirectional => 1,
    }
}

#[cfg(test)]
mod tests;
