//! Limits on the bytes that are written before the peer has received them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use courser_wire::StreamId;

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
    /// Streams whose writers were blocked by the limits of the whole connection, by session.
    writers: BTreeMap<u32, VecDeque<StreamId>>,
    /// Bytes of `retained` by session, without those of streams that have none.
    sessions: BTreeMap<u32, u64>,
    /// The session whose writer was woken last while others waited too.
    woken: u32,
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
            writers: BTreeMap::new(),
            sessions: BTreeMap::new(),
            woken: 0,
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

    /// Returns the limits of a write. `credit` is what the peer grants for the connection.
    pub(super) fn write_limits(&self, credit: u64, session: u32) -> WriteLimits {
        let connection = self.limit().saturating_sub(self.retained);
        WriteLimits {
            unsent_limit: self.unsent_limit,
            connection: match session {
                0 => connection,
                _ => connection.min(self.share().saturating_sub(self.held(session))),
            },
            reserve: self.limit_with_reserve().saturating_sub(self.retained),
            credit: credit.saturating_sub(self.unsent),
            ahead: (credit + self.unsent_limit / 2).saturating_sub(self.unsent),
        }
    }

    /// Returns the part of the limit that each session may hold while several send: one with many streams would hold all
    /// of it, and another one would run out of data before it may write again.
    fn share(&self) -> u64 {
        let sessions = self.sessions.len().max(self.writers.len()).max(1);
        self.limit() / sessions as u64
    }

    /// Returns the bytes that a session holds.
    fn held(&self, session: u32) -> u64 {
        self.sessions.get(&session).copied().unwrap_or_default()
    }

    /// Changes the bytes that a session holds, from those of one of its streams before to those after.
    pub(super) fn on_held(&mut self, session: u32, before: u64, after: u64) {
        let held = (self.held(session) + after).saturating_sub(before);
        match held {
            0 => self.sessions.remove(&session),
            held => self.sessions.insert(session, held),
        };
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
        (self.writers, self.sessions) = (BTreeMap::new(), BTreeMap::new());
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
        let limit = window.saturating_mul(4).max(least).min(self.max);
        let unsent_limit = window.saturating_mul(2).max(UNSENT_MIN);
        self.unsent_limit = unsent_limit.min(self.max_unsent).min(self.max);
        let changes = limit != self.limit;
        self.limit = limit;
        changes
    }

    /// Adds the writer of a stream to those of its session that wait, if it is not among them.
    pub(super) fn wait(&mut self, session: u32, id: StreamId) {
        let writers = self.writers.entry(session).or_default();
        if !writers.contains(&id) {
            writers.push_back(id);
        }
    }

    /// Returns true if writers wait and a quarter of the limit is free.
    #[inline]
    pub(super) fn can_wake_writers(&self) -> bool {
        !self.writers.is_empty() && self.retained <= self.limit() / 4 * 3
    }

    /// Removes and returns the writers to wake. If those of several sessions wait, it is one of each: the memory that is
    /// free would go to the session with the most writers otherwise. The others follow when more is acknowledged, all
    /// of them when little is left to acknowledge.
    pub(super) fn next_writers(&mut self) -> Vec<StreamId> {
        if self.writers.len() == 1 && self.sessions.len() <= 1 {
            let writers = self.writers.pop_first();
            return writers.map_or_else(Vec::new, |(_, writers)| writers.into());
        }
        // Those behind the session that was first before are first now.
        let behind = (Bound::Excluded(self.woken), Bound::Unbounded);
        let sessions: Vec<u32> = self
            .writers
            .range(behind)
            .chain(self.writers.range(..=self.woken))
            .map(|(session, _)| *session)
            .collect();
        if let Some(first) = sessions.first() {
            self.woken = *first;
        }
        let mut woken = Vec::with_capacity(sessions.len());
        let share = self.share();
        if self.retained <= self.limit() / 4 {
            for session in sessions {
                woken.extend(self.writers.remove(&session).unwrap_or_default());
            }
            return woken;
        }
        for session in sessions {
            if session != 0 && self.held(session) > share / 4 * 3 {
                continue;
            }
            if let Entry::Occupied(mut writers) = self.writers.entry(session) {
                woken.extend(writers.get_mut().pop_front());
                if writers.get().is_empty() {
                    writers.remove();
                }
            }
        }
        woken
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

/// Bytes that a connection may keep until they are acknowledged even if memory is short.
const MIN_FAIR_SHARE: u64 = 64 << 10;

/// Unsent bytes that a stream may hold while the congestion window is small, if the configuration
/// allows that many. Two windows suffice for a writer to keep the sender busy.
const UNSENT_MIN: u64 = 64 << 10;

#[cfg(test)]
mod tests;
