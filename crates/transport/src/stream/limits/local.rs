//! Streams that we open. RFC 9000 §4.6.

use courser_wire::MAX_STREAMS;

/// The streams of one direction that we open.
#[derive(Debug, Default)]
pub(in crate::stream) struct LocalStreams {
    /// Number of streams opened so far, which is also the next index.
    opened: u64,
    closed: u64,
    /// The peer's limit; unknown until its transport parameters arrive.
    limit: Option<u64>,
    /// The limit for which STREAMS_BLOCKED was queued; one frame per limit is enough.
    signalled: Option<u64>,
    /// STREAMS_BLOCKED for limits below this has been acknowledged.
    acked_below: u64,
    /// True if [`LocalStreams::open`] returned `None` and the application waits for an event.
    is_waiting: bool,
}

impl LocalStreams {
    /// Opens a stream and returns its index, if the peer allows one more.
    pub(in crate::stream) fn open(&mut self) -> Option<u64> {
        if self.opened >= self.limit.unwrap_or(0) {
            self.is_waiting = true;
            return None;
        }
        self.opened += 1;
        Some(self.opened - 1)
    }

    /// Returns the number of streams opened so far.
    pub(in crate::stream) const fn opened(&self) -> u64 {
        self.opened
    }

    /// Returns true while a stream is open.
    pub(in crate::stream) const fn are_open(&self) -> bool {
        self.opened > self.closed
    }

    /// Returns true if the stream with this index was opened, even if it is closed by now.
    #[inline]
    pub(in crate::stream) const fn was_opened(&self, index: u64) -> bool {
        index < self.opened
    }

    /// Counts a stream as ended.
    pub(in crate::stream) fn on_retired(&mut self) {
        self.closed += 1;
    }

    /// Returns the number of open streams.
    pub(in crate::stream) const fn count(&self) -> u64 {
        self.opened - self.closed
    }

    /// Returns the peer's limit, once it is known.
    pub(in crate::stream) const fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Raises the peer's limit. Returns true if the application waits for it to be raised.
    /// Ignores a limit that is not larger.
    pub(in crate::stream) fn on_limit(&mut self, limit: u64) -> bool {
        let limit = limit.min(MAX_STREAMS);
        if self.limit.is_none_or(|old| limit > old) {
            self.limit = Some(limit);
        }
        self.limit > Some(self.opened) && std::mem::take(&mut self.is_waiting)
    }

    /// Returns true once per limit that keeps the application from opening a stream.
    pub(in crate::stream) fn take_signal(&mut self) -> bool {
        let due = self.blocked_at().is_some() && self.signalled != self.limit;
        if due {
            self.signalled = self.limit;
        }
        due
    }

    /// Processes the acknowledgement of STREAMS_BLOCKED with this limit.
    pub(in crate::stream) fn on_blocked_acked(&mut self, limit: u64) {
        self.acked_below = self.acked_below.max(limit.saturating_add(1));
    }

    /// Returns true if STREAMS_BLOCKED for the current limit was acknowledged.
    pub(in crate::stream) fn is_blocked_acked(&self) -> bool {
        self.limit.is_some_and(|limit| limit < self.acked_below)
    }

    /// Requests another STREAMS_BLOCKED, because the last one was lost or should be repeated.
    pub(in crate::stream) fn clear_signal(&mut self) {
        self.signalled = None;
    }

    /// Returns the limit for STREAMS_BLOCKED, if it still applies.
    pub(in crate::stream) fn blocked_at(&self) -> Option<u64> {
        self.limit
            .filter(|&limit| self.is_waiting && self.opened >= limit)
    }
}

#[cfg(test)]
mod tests;
