//! Streams: ordered bytes in both directions. RFC 9000 §2 to §4.
//!
//! [`Streams`] contains all streams of one connection: each is a `SendPart` and a `ReceivePart` in
//! an entry of the `table`. The fields hold what the streams share: `limits` the numbers
//! of streams, `flow` the credit of the connection, `buffers` the memory of data in both directions, and
//! `send_queues` the order of sending.
//!
//! The methods are sorted by caller: `writing`, `lead`, `ordering`, `reading` and `watch` for applications, `peer_frames`
//! for received frames, `transmit` for packets that are being built, and `fate` for packets that were
//! acknowledged or lost.

mod buffers;
mod chunk_pool;
mod config;
mod control;
mod deadlines;
mod early;
mod event;
mod fate;
mod half;
mod lead;
mod limits;
mod ordering;
mod peer_frames;
mod rate_caps;
mod reading;
mod reassembler;
mod receive;
mod resize;
mod schedule;
mod send;
mod send_budget;
mod send_buffer;
mod send_queues;
mod stats;
mod table;
mod transmit;
mod unread;
mod watch;
mod writing;

use std::collections::{BTreeMap, VecDeque};

use courser_base::{Side, Time};
use courser_wire::{Direction, StreamId, TransportParameters};

pub use self::chunk_pool::ChunkPool;
pub use self::config::StreamsConfig;
pub use self::event::{
    ClosedStream, FinishError, ReadError, ResetAtError, StreamEvent, StreamOutcome, WriteError,
};
pub use self::schedule::Level;
pub(crate) use self::send_buffer::Span;
pub use self::stats::{BlockedBy, RecvStreamStats, SendStreamStats};

use self::buffers::Buffers;
use self::deadlines::Deadlines;
use self::half::Half;
use self::limits::StreamLimits;
use self::receive::ReceiveLimits;
use self::send_queues::SendQueues;
use self::table::Table;
use crate::flow::{ConnectionFlow, Draw};

/// All streams of one connection, with its flow control and its limits on streams.
#[derive(Debug)]
pub struct Streams {
    side: Side,
    table: Table,
    buffers: Buffers,
    limits: StreamLimits,
    flow: ConnectionFlow,
    /// The peer's credit for a new stream.
    initial: InitialLimits,
    /// Our credit for a new stream.
    receiving: ReceiveLimits,
    queues: SendQueues,
    events: VecDeque<StreamEvent>,
    /// Created for the first stream with a deadline.
    deadlines: Option<Box<Deadlines>>,
    /// True if the peer may send RESET_STREAM_AT.
    accepts_reset_at: bool,
    /// True if the peer accepts RESET_STREAM_AT.
    peer_accepts_reset_at: bool,
    /// True if the connection is over and only received data is left.
    is_over: bool,
    counters: StreamCounters,
    /// Bytes of streams of sessions that were written and will never be sent, by session.
    /// Created for the first of them.
    #[expect(clippy::box_collection, reason = "a pointer in each idle connection")]
    unsent_of_sessions: Option<Box<BTreeMap<u32, u64>>>,
    /// The final sizes of streams that the application awaits, `None` until they are known. Created for the first of
    /// them.
    #[expect(clippy::box_collection, reason = "a pointer in each idle connection")]
    sizes: Option<Box<BTreeMap<StreamId, Option<u64>>>>,
    /// The final size of the receiving part that was last read to its end.
    last_size: Option<u64>,
    /// The stream that last received content, while it is incomplete.
    awaited: Option<StreamId>,
    /// The time of the last frame, packet or timeout, for calls of the application.
    now: Time,
}

/// The credit of each kind of stream in the peer's transport parameters.
#[derive(Clone, Copy, Debug, Default)]
struct InitialLimits {
    ours_bidi: u64,
    theirs_bidi: u64,
    ours_uni: u64,
}

/// Totals since the start of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamCounters {
    /// Bytes of stream data sent, each counted once.
    pub data_sent: u64,
    /// Bytes of stream data received, by highest offset.
    pub data_received: u64,
    /// Bytes of stream data retransmitted.
    pub data_retransmitted: u64,
    /// Bytes of stream data acknowledged up to the first gap.
    pub data_acked: u64,
    /// Number of times that the connection's limit held data back.
    pub connection_blocked: u64,
    /// Number of times that a stream's limit held data back.
    pub stream_blocked: u64,
    /// Frames refused because there were too many gaps.
    pub refused: u64,
}

/// Stream data that the peer has not acknowledged yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Undelivered {
    /// Bytes acknowledged so far, as in `StreamCounters::data_acked`.
    pub acked: u64,
    /// Bytes written and not acknowledged.
    pub bytes: u64,
    /// True while a writer waits for credit, or for acknowledgements that free send buffer.
    pub has_blocked_writer: bool,
}

impl Streams {
    /// Creates the state of a connection without streams. `hash_key` is 16 secret random bytes, against
    /// peers that choose stream IDs with equal hashes.
    ///
    /// The limits of `config` apply from the start, so our transport parameters must announce the same
    /// ones.
    pub fn new(side: Side, config: StreamsConfig, pool: ChunkPool, hash_key: [u8; 16]) -> Self {
        Self {
            side,
            table: Table::new(side, hash_key),
            buffers: Buffers::new(pool, &config),
            limits: StreamLimits::new(side, config.max_bidi, config.max_uni),
            flow: ConnectionFlow::new(config.receive_window, config.receive_window_max),
            initial: InitialLimits::default(),
            receiving: ReceiveLimits::new(&config),
            queues: SendQueues::new(config.are_fair),
            events: VecDeque::new(),
            deadlines: None,
            accepts_reset_at: config.reset_stream_at,
            peer_accepts_reset_at: false,
            is_over: false,
            counters: StreamCounters::default(),
            unsent_of_sessions: None,
            sizes: None,
            last_size: None,
            awaited: None,
            now: Time::ZERO,
        }
    }

    /// Returns the memory held for the peer: bytes sent and not acknowledged, the buffers of bytes
    /// received and not read, read bytes that the application holds without crediting the peer, and
    /// the streams themselves.
    pub(crate) fn memory(&self) -> u64 {
        let streams = self.table.len() as u64 * STREAM_MEMORY;
        self.buffers.memory() + self.flow.receive.held() + streams
    }

    /// Returns the bytes delivered to the peer or to the application so far.
    pub(crate) fn delivered(&self) -> u64 {
        let read = self.flow.receive.received() - self.flow.receive.unconsumed();
        self.buffers.sending.acked() + read
    }

    /// Sets the memory that the endpoint has left for all its connections, in bytes.
    #[inline]
    pub(crate) fn set_memory_left(&mut self, left: u64) {
        self.buffers.sending.set_memory_left(left);
    }

    /// Takes the memory for growth of the connection's window from a shared budget.
    pub(crate) fn draw_from(&mut self, draw: Draw) {
        self.flow.draw_from(draw);
    }

    /// Returns true if the peer accepts RESET_STREAM_AT, which is known once its transport parameters have arrived.
    pub const fn peer_accepts_reset_at(&self) -> bool {
        self.peer_accepts_reset_at
    }

    /// Sets the limits of the peer. Before, no stream can be opened and no data sent.
    pub fn on_peer_parameters(&mut self, parameters: &TransportParameters) {
        self.initial = InitialLimits {
            ours_bidi: parameters.initial_max_stream_data_bidi_remote,
            theirs_bidi: parameters.initial_max_stream_data_bidi_local,
            ours_uni: parameters.initial_max_stream_data_uni,
        };
        self.peer_accepts_reset_at = parameters.reset_stream_at;
        self.flow.send.raise(parameters.initial_max_data);
        for key in self.table.keys().collect::<Vec<_>>() {
            let state = self.table.at(key);
            let limit = self.initial.of(self.side, state.id);
            if state.sends && state.send.on_max_stream_data(limit) {
                self.schedule(key);
            }
        }
        for (direction, limit) in [
            (
                Direction::Bidirectional,
                parameters.initial_max_streams_bidi,
            ),
            (
                Direction::Unidirectional,
                parameters.initial_max_streams_uni,
            ),
        ] {
            self.raise_local_limit(direction, limit);
        }
    }

    /// Returns the time for [`Streams::on_timeout`]: when the peer gets credit for cancelled streams (attack
    /// limit K15), the deadline of a stream passes, or a stream with a limit on its rate may continue.
    pub fn next_timeout(&self) -> Option<Time> {
        let deadline = self.deadlines.as_ref().and_then(|it| it.next());
        let resumption = self.queues.next_resumption();
        let next = Time::earliest(deadline, resumption);
        Time::earliest(next, self.limits.next_timeout())
    }

    /// Grants credit for cancelled streams that is due, resets streams whose deadline has passed, and
    /// resumes streams that paused because of their limit on the rate.
    pub fn on_timeout(&mut self, now: Time) {
        self.now = now;
        if self.deadlines.is_some() {
            self.reset_late_streams(now);
        }
        while let Some(id) = self.queues.pop_resumed(now) {
            if let Some(key) = self.table.find(id) {
                self.schedule(key);
            }
        }
        self.limits.on_timeout(now);
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Returns true while data, an end or a reset is unsent or unacknowledged, or a writer waits
    /// for credit of its stream.
    pub fn unacked_or_unsent(&self) -> bool {
        self.buffers.sending.retained() > 0
            || self.table.iter().any(|entry| {
                let send = &entry.send;
                entry.sends && (send.is_pending() || send.is_waiting_for_credit())
            })
    }

    /// Returns the amount of written data that the peer has not acknowledged yet.
    pub fn undelivered(&self) -> Undelivered {
        Undelivered {
            acked: self.buffers.sending.acked(),
            bytes: self.buffers.sending.retained(),
            has_blocked_writer: self.table.iter().any(|entry| {
                let send = &entry.send;
                entry.sends && (send.is_waiting_for_credit() || send.is_waiting_for_connection())
            }),
        }
    }

    /// Returns the totals since the start of the connection.
    pub fn counters(&self) -> StreamCounters {
        StreamCounters {
            data_acked: self.buffers.sending.acked(),
            ..self.counters
        }
    }

    /// Returns the number of streams of one direction, opened by one side, that are not over.
    pub fn open_count(&self, initiator: Side, direction: Direction) -> u64 {
        self.limits.open_count(initiator, direction)
    }

    /// Returns the number of streams of one direction that the peer may have opened in total, as
    /// announced.
    pub fn granted(&self, direction: Direction) -> u64 {
        self.limits.announced(direction)
    }

    /// Returns true while new data waits for the peer to raise the connection's limit.
    pub fn is_connection_blocked(&self) -> bool {
        !self.queues.new.is_empty() && self.flow.send.available() == 0
    }

    /// Returns true while new data waits for the peer to raise a stream's limit. Examines every
    /// stream, so it is meant for traces.
    pub fn is_stream_blocked(&self) -> bool {
        let mut streams = self.table.iter();
        self.counters.stream_blocked > 0
            && streams.any(|state| state.sends && state.send.blocked_at().is_some())
    }

    /// Returns false while the peer's credit has sufficed for everything so far. Takes constant
    /// time, whereas [`Streams::repeat_blocked`] examines every stream.
    pub fn was_ever_blocked(&self) -> bool {
        let counters = &self.counters;
        counters.connection_blocked + counters.stream_blocked > 0 || self.limits.is_blocked()
    }

    /// Frees memory that is kept for reuse by the next streams, when the connection is idle.
    pub fn shrink(&mut self) {
        self.buffers.shrink();
        self.buffers.sending.shrink();
        self.events.shrink_to_fit();
        self.queues.shrink();
        if self.table.len() == 0 {
            self.table.clear();
            self.queues.control.clear();
        } else {
            self.table.shrink();
        }
    }

    /// Returns the number of entries for streams, empty ones included.
    #[cfg(test)]
    pub(crate) fn kept_entries(&self) -> usize {
        self.table.kept()
    }

    /// Closes all streams and frees everything when the connection is closed. If received data should
    /// stay readable, call [`Streams::on_lost`] instead.
    pub fn on_close(&mut self) {
        self.table.clear();
        self.buffers.reset_counts();
        self.queues.clear();
        self.buffers.shrink();
        self.limits.on_close();
        self.flow.end();
        self.events = VecDeque::new();
        self.deadlines = None;
        (self.sizes, self.unsent_of_sessions) = (None, None);
    }

    /// Creates the state of a stream, with the limits of the transport parameters.
    fn begin(&mut self, id: StreamId) -> u32 {
        let key = self.table.insert(id);
        let state = self.table.at(key);
        state.sends &= !self.is_over;
        if state.sends {
            state.send.begin(self.initial.of(self.side, id));
        } else {
            state.send = Half::default();
        }
        if state.receives {
            state.receive.begin(self.receiving);
        } else {
            state.receive = Half::default();
        }
        key
    }

    /// Queues a stream for the data it has to send, and requests the frames that ask for credit.
    #[inline]
    fn schedule(&mut self, key: u32) {
        let is_blocked = self.queues.schedule(key, self.table.at(key));
        self.counters.stream_blocked += u64::from(is_blocked);
        self.signal_if_blocked();
    }

    /// Requests DATA_BLOCKED if only the connection's limit holds data back.
    #[inline]
    fn signal_if_blocked(&mut self) {
        if !self.queues.new.is_empty() && self.flow.signal_blocked() {
            self.counters.connection_blocked += 1;
        }
    }

    /// Returns true while a bidirectional stream that we opened is open.
    #[inline]
    pub fn has_own_exchanges(&self) -> bool {
        self.limits.has_own_exchanges()
    }

    /// Returns true if part of the content of a stream has arrived, and the rest is missing.
    #[inline]
    pub fn awaits_content(&self) -> bool {
        self.awaited.is_some()
    }

    /// Removes a stream if both of its parts are over.
    fn retire_if_over(&mut self, key: u32) {
        if self.table.at(key).is_over() {
            self.retire(key);
        }
    }

    fn retire(&mut self, key: u32) {
        let state = self.table.at(key);
        let (id, was_cancelled) = (state.id, state.was_cancelled());
        let (share, held) = (state.share, std::mem::take(&mut state.held));
        if state.receives {
            let grown = state.receive.window_growth(self.receiving);
            self.flow.on_stream_over(grown);
        }
        self.queues.remove(state);
        if held > 0 {
            self.buffers.sending.on_held(share.session, held, 0);
        }
        self.buffers.sending.forget_writer(id);
        self.end_session_of(id, &share);
        self.record_content(id, false);
        if let Some(deadlines) = &mut self.deadlines {
            deadlines.remove(id);
        }
        self.table.remove(key, &mut self.buffers);
        if self.table.is_oversized() {
            self.table.clear();
            self.queues.control.clear();
        }
        self.limits.on_retired(self.now, id, was_cancelled);
    }

    /// Adapts the limits of the send buffers to the congestion window.
    #[inline]
    pub fn on_congestion_window(&mut self, window: u64) {
        if self.buffers.sending.on_congestion_window(window) {
            self.wake_writers();
        }
    }

    /// Wakes writers that wait for the connection's send buffer, once a quarter of its limit is free.
    #[inline]
    fn wake_writers(&mut self) {
        if self.buffers.sending.can_wake_writers() && self.flow.send.available() > 0 {
            self.wake_waiting_writers();
        }
    }

    /// Records whether the rest of a stream's content is missing.
    #[inline]
    fn record_content(&mut self, id: StreamId, is_awaited: bool) {
        if is_awaited {
            self.awaited = Some(id);
        } else if self.awaited == Some(id) {
            self.awaited = None;
        }
    }
}

impl InitialLimits {
    /// Returns the initial credit of a stream; zero if we do not send on it.
    fn of(self, side: Side, id: StreamId) -> u64 {
        match (id.initiator() == side, id.direction()) {
            (true, Direction::Bidirectional) => self.ours_bidi,
            (false, Direction::Bidirectional) => self.theirs_bidi,
            (true, Direction::Unidirectional) => self.ours_uni,
            (false, Direction::Unidirectional) => 0,
        }
    }
}

/// Memory of a stream without its data, including the task that serves it (limit K116). An HTTP/3 server
/// takes 4 KiB for a request whose header section has not arrived; applications that use only
/// streams take less.
const STREAM_MEMORY: u64 = 2 << 10;

#[cfg(test)]
mod tests;
