//! Limits on the bytes that are written before the peer has received them.

mod writers;

use courser_wire::StreamId;

use self::writers::Writers;
use super::StreamsConfig;

/// The limits of one write, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteLimits {
    /// Unsent bytes that a stream may hold.
    pub(super) unsent_limit: u64,
    /// Bytes that all streams together may still accept.
    pub(super) connection: u64,
    /// The same for streams that hold little.
    pub(super) reserve: u64,
    /// The connection's credit that is not claimed by unsent bytes of any stream.
    pub(super) credit: u64,
    /// Bytes that all streams together may hold beyond the connection's credit.
    pub(super) ahead: u64,
}

impl WriteLimits {
    /// Returns the limits of a write of `len` bytes that waits for nothing but the peer's `credit`.
    pub(super) const fn of_header(len: u64, credit: u64) -> Self {
        Self {
            unsent_limit: len,
            connection: len,
            reserve: len,
            credit,
            ahead: credit,
        }
    }
}

/// The memory that all streams together may take for sending, and the writers that wait for it.
///
/// The limits follow the congestion window: a connection needs little memory on a slow path, and
/// much on a fast and long one.
#[derive(Debug)]
pub(super) struct SendBudget {
    /// Bytes that wait for an acknowledgement, sent or unsent.
    retained: u64,
    /// Bytes that were never sent.
    unsent: u64,
    /// Bytes acknowledged so far, up to the first gap of each stream.
    acked: u64,
    /// Limit on `retained`.
    limit: u64,
    /// Limit on the unsent bytes of one stream.
    unsent_limit: u64,
    /// Maximum of `limit`.
    max: u64,
    /// Maximum of `unsent_limit`.
    max_unsent: u64,
    /// The congestion window that the limits follow.
    congestion_window: u64,
    /// Free memory of the endpoint.
    memory_left: u64,
    /// True once a stream has had an order.
    is_ordered: bool,
    /// Created when a writer first waits, or a session first holds bytes.
    writers: Option<Box<Writers>>,
}

impl SendBudget {
    /// Starts with the smallest limits.
    pub(super) fn new(config: &StreamsConfig) -> Self {
        Self {
            retained: 0,
            unsent: 0,
            acked: 0,
            limit: config.send_buffer_max.min(SEND_BUFFER_MIN),
            unsent_limit: config.unsent_limit.min(UNSENT_MIN),
            max: config.send_buffer_max,
            max_unsent: config.unsent_limit,
            congestion_window: 0,
            memory_left: u64::MAX,
            is_ordered: false,
            writers: None,
        }
    }

    /// Returns the bytes that wait for an acknowledgement.
    #[inline]
    pub(super) const fn retained(&self) -> u64 {
        self.retained
    }

    /// Returns the bytes that were never sent.
    #[inline]
    pub(super) const fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Returns the bytes acknowledged so far, up to the first gap of each stream.
    #[inline]
    pub(super) const fn acked(&self) -> u64 {
        self.acked
    }

    /// Returns the limit on the unsent bytes of one stream.
    #[inline]
    pub(super) const fn unsent_limit(&self) -> u64 {
        self.unsent_limit
    }

    /// Returns the limit on bytes kept until they are acknowledged: at most a quarter of the memory
    /// left, so that many connections at their limit leave some for others.
    fn limit(&self) -> u64 {
        self.limit.min(self.fair_share())
    }

    fn fair_share(&self) -> u64 {
        (self.memory_left / 4).max(MIN_FAIR_SHARE)
    }

    /// Returns the limit with the reserve for streams that hold little.
    fn limit_with_reserve(&self) -> u64 {
        let limit = self.limit + self.limit / RESERVES;
        limit.min(self.max).min(self.fair_share())
    }

    /// Returns the limits of a write to a stream without a session, without the reserve. `credit` is what the peer grants
    /// for the connection.
    #[inline]
    pub(super) fn quick_limits(&self, credit: u64) -> WriteLimits {
        WriteLimits {
            unsent_limit: self.unsent_limit,
            connection: self.limit().saturating_sub(self.retained),
            reserve: 0,
            credit: credit.saturating_sub(self.unsent),
            ahead: (credit + self.unsent_limit / 2).saturating_sub(self.unsent),
        }
    }

    /// Returns the limits of a write. `credit` is what the peer grants for the connection.
    pub(super) fn write_limits(&self, credit: u64, session: u32) -> WriteLimits {
        let limits = self.quick_limits(credit);
        WriteLimits {
            connection: match session {
                0 => limits.connection,
                _ => {
                    let left = self.share().saturating_sub(self.held(session));
                    limits.connection.min(left)
                }
            },
            reserve: self.limit_with_reserve().saturating_sub(self.retained),
            ..limits
        }
    }

    /// Returns the part of the limit that each session may hold while several send: one with many streams would hold all
    /// of it, and another one would run out of data before it may write again.
    fn share(&self) -> u64 {
        self.limit() / self.sessions()
    }

    /// Returns the number of sessions that send, 1 at least.
    fn sessions(&self) -> u64 {
        let writers = self.writers.as_ref();
        let sessions = writers.map_or(0, |writers| writers.sessions());
        sessions.max(1) as u64
    }

    /// Returns the bytes that a session holds.
    fn held(&self, session: u32) -> u64 {
        let writers = self.writers.as_ref();
        writers.map_or(0, |writers| writers.held(session))
    }

    /// Changes the bytes that a session holds, from those of one of its streams before to those after.
    pub(super) fn on_held(&mut self, session: u32, before: u64, after: u64) {
        let writers = self.writers.get_or_insert_default();
        writers.on_held(session, before, after);
    }

    /// Counts bytes that were written.
    #[inline]
    pub(super) fn on_written(&mut self, len: u64) {
        self.retained += len;
        self.unsent += len;
    }

    /// Counts bytes that were sent for the first time.
    #[inline]
    pub(super) fn on_sent(&mut self, len: u64) {
        self.unsent -= len;
    }

    /// Counts bytes that were freed because the peer has acknowledged them.
    #[inline]
    pub(super) fn on_acked(&mut self, len: u64) {
        self.retained -= len;
        self.acked += len;
    }

    /// Counts bytes that were freed because they need not be delivered. `unsent` of them were never
    /// sent.
    pub(super) fn on_discarded(&mut self, len: u64, unsent: u64) {
        self.retained -= len;
        self.unsent -= unsent;
    }

    /// Resets the counts and removes all writers, when all streams are dropped at once.
    pub(super) fn clear(&mut self) {
        (self.retained, self.unsent) = (0, 0);
        self.writers = None;
    }

    /// Sets the memory that the endpoint has left for all its connections.
    #[inline]
    pub(super) fn set_memory_left(&mut self, left: u64) {
        self.memory_left = left;
    }

    /// Changes the maximum of bytes kept for all streams. Returns true if the present limit changes.
    pub(super) fn set_max(&mut self, bytes: u64) -> bool {
        self.max = bytes;
        self.on_congestion_window(self.congestion_window)
    }

    /// Adapts the limits to the congestion window. Returns true if the limit on all
    /// bytes changes.
    ///
    /// Four windows may be kept until they are acknowledged: one is in flight, and three cover lost
    /// packets, because data behind a lost packet is kept until its retransmission arrives. That
    /// takes one round trip more, two if the retransmission is lost too, and so on. The least limit grows with
    /// the bytes that the peer has acknowledged.
    #[inline]
    pub(super) fn on_congestion_window(&mut self, window: u64) -> bool {
        self.congestion_window = window;
        let least = (SEND_BUFFER_MIN + self.acked).min(SEND_BUFFER_USUAL);
        let max = match self.is_ordered {
            true => self.max - self.max / RESERVES,
            false => self.max,
        };
        let limit = window.saturating_mul(4).max(least).min(max);
        let unsent_limit = window.saturating_mul(2).max(UNSENT_MIN);
        self.unsent_limit = unsent_limit.min(self.max_unsent).min(self.max);
        let changes = limit != self.limit;
        self.limit = limit;
        changes
    }

    /// Adds the writer of a stream to those of its session that wait, if it is not among them.
    pub(super) fn wait(&mut self, session: u32, id: StreamId) {
        self.writers.get_or_insert_default().wait(session, id);
    }

    /// Returns true if writers wait and may try again.
    #[inline]
    pub(super) fn can_wake_writers(&self) -> bool {
        let writers = self.writers.as_ref();
        writers.is_some_and(|writers| {
            !writers.is_empty() && (self.is_quarter_free() || self.can_wake_lead(writers))
        })
    }

    /// Returns true if a quarter of the limit is free.
    #[inline]
    pub(super) fn is_quarter_free(&self) -> bool {
        self.retained <= self.limit() / 4 * 3
    }

    fn can_wake_lead(&self, writers: &Writers) -> bool {
        let may_lead = self.is_ordered || !writers.leads().is_empty();
        may_lead && self.retained + LEAD / 4 <= self.lead_limit()
    }

    /// Removes the writer of a stream from those that wait.
    pub(super) fn forget_writer(&mut self, id: StreamId) {
        if let Some(writers) = &mut self.writers {
            writers.forget(id);
        }
    }

    /// Returns the streams whose writers wait, those of each session that have begun last first.
    pub(super) fn waiting_writers(&self) -> impl Iterator<Item = StreamId> {
        self.writers.iter().flat_map(|writers| writers.waiting())
    }

    /// Removes and returns the next writer to wake, if none of sessions wait and none of them holds bytes.
    pub(super) fn next_plain_writer(&mut self) -> Option<StreamId> {
        self.writers.as_mut()?.next_plain()
    }

    /// Removes and returns the writers to wake. If those of several sessions wait, it is one of each: the memory that is
    /// free would go to the session with the most writers otherwise. The others follow when more is acknowledged, all
    /// of them when little is left to acknowledge.
    pub(super) fn next_writers(&mut self) -> Vec<StreamId> {
        let is_nearly_free = self.retained <= self.limit() / 4;
        let share = self.share();
        let writers = self.writers.as_mut();
        writers.map_or_else(Vec::new, |writers| writers.next(is_nearly_free, share))
    }

    /// Keeps a part of the maximum for streams that precede all others of their group.
    pub(super) fn expect_order(&mut self) {
        self.is_ordered = true;
        self.on_congestion_window(self.congestion_window);
    }

    /// Returns true once a stream has had an order.
    #[inline]
    pub(super) const fn expects_order(&self) -> bool {
        self.is_ordered
    }

    /// Returns the limit on bytes kept until they are acknowledged for a stream that precedes all others of its group.
    fn lead_limit(&self) -> u64 {
        let limit = self.limit + self.limit / LEAD_RESERVES;
        limit.min(self.max).min(self.fair_share())
    }

    /// Returns the limits of a write to a stream that precedes all others of its group. `credit` is what the peer grants
    /// for the connection beyond the unsent bytes of this stream: those of others are sent after it.
    pub(super) fn lead_limits(&self, credit: u64, session: u32) -> WriteLimits {
        let limit = self.lead_limit();
        let connection = limit.saturating_sub(self.retained);
        let connection = match session {
            0 => connection,
            _ => connection.min((limit / self.sessions()).saturating_sub(self.held(session))),
        };
        WriteLimits {
            unsent_limit: self.unsent_limit.min(LEAD),
            connection,
            reserve: connection,
            credit,
            ahead: credit,
        }
    }

    /// Returns the streams whose writers wait although they precede all others of their groups.
    pub(super) fn leads(&self) -> &[StreamId] {
        self.writers.as_ref().map_or(&[], |writers| writers.leads())
    }

    /// Adds a writer that waits to those that precede all others of their groups. Keeps those for which `stays` returns
    /// true.
    pub(super) fn wait_to_lead(&mut self, id: StreamId, stays: impl FnMut(StreamId) -> bool) {
        self.writers.get_or_insert_default().wait_to_lead(id, stays);
    }

    /// Removes and returns the writer that has waited longest of those that precede all others of their groups.
    pub(super) fn next_lead(&mut self) -> Option<StreamId> {
        self.writers.as_mut()?.next_lead()
    }

    /// Frees the memory of writers if none wait and no session holds bytes.
    pub(super) fn shrink(&mut self) {
        self.writers.take_if(|writers| writers.is_unused());
    }
}

/// The smallest limit on bytes kept for sending, if the configuration allows that much: twice [`UNSENT_MIN`], so that
/// one stream leaves half of it to others. A peer that never acknowledges anything holds this much (attack A24).
pub(super) const SEND_BUFFER_MIN: u64 = 128 << 10;

/// The smallest limit for a peer that has acknowledged this much. A window is small on a fast path too, and a
/// larger buffer wakes writers less often.
const SEND_BUFFER_USUAL: u64 = 512 << 10;

/// The reserve for streams that hold little is this part of the limit, in addition to it (limit K590). Without it, a
/// request beside a few transfers waits until these end, because their writers take all memory that is freed.
const RESERVES: u64 = 8;

/// Bytes of a stream that may be unsent while it precedes all others of its group and the buffer is full: as much as it
/// sends in a turn (limit K636).
pub(super) const LEAD: u64 = 16 << 10;

/// The reserve for streams that precede all others of their groups is this part of the limit, in addition to it (limit
/// K645). Half of it is beyond that for streams that hold little.
const LEAD_RESERVES: u64 = 4;

/// Bytes that a connection may keep until they are acknowledged even if memory is short.
const MIN_FAIR_SHARE: u64 = 64 << 10;

/// Unsent bytes that a stream may hold while the congestion window is small, if the configuration
/// allows that many. Two windows suffice for a writer to keep the sender busy.
const UNSENT_MIN: u64 = 64 << 10;

#[cfg(test)]
mod tests;
