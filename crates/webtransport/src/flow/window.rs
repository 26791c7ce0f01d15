//! The windows that this end grants to the peer.

use std::time::Duration;

use courser_base::Time;
use courser_wire::{MAX_STREAMS, MAX_VARINT};

/// The bytes of the peer in a session. The limit follows what is consumed, at the distance of a window that grows
/// while the peer needs it.
#[derive(Debug)]
pub(super) struct DataWindow {
    window: u64,
    longest: u64,
    received: u64,
    consumed: u64,
    announced: u64,
    /// The time at which the last announcement after half a window was due.
    updated: Option<Time>,
    is_due: bool,
    /// The peer has reported that the announced limit holds it back.
    is_blocked: bool,
    /// The time at which a limit is due that has grown by less than half a window.
    patience: Option<Time>,
}

impl DataWindow {
    pub(super) const fn new(window: u64, longest: u64) -> Self {
        Self {
            window,
            longest,
            received: 0,
            consumed: 0,
            announced: window,
            updated: None,
            is_due: false,
            is_blocked: false,
            patience: None,
        }
    }

    /// Counts received bytes. Returns false if they exceed the announced limit.
    pub(super) const fn receive(&mut self, bytes: u64) -> bool {
        self.received = self.received.saturating_add(bytes);
        self.received <= self.announced
    }

    /// Counts consumed bytes. The limit is announced when half of the window is used, without waiting for a report
    /// that the peer is blocked (draft-ietf-webtrans-http3-16 §5.6). The window doubles if it is used up faster than
    /// in two round trips.
    pub(super) fn consume(&mut self, now: Time, rtt: Duration, bytes: u64) {
        self.consumed = self.consumed.saturating_add(bytes).min(self.received);
        if self.is_due || self.window == 0 {
            return;
        }
        let left = self.announced.saturating_sub(self.consumed);
        if left > self.window / 2 {
            return self.wait(now);
        }
        let is_fast = self.updated.is_some_and(|updated| now - updated < 2 * rtt);
        if is_fast {
            self.window = self.window.saturating_mul(2).min(self.longest);
        }
        self.updated = Some(now);
        self.is_due = true;
    }

    /// Processes a report that `limit` holds the peer back.
    ///
    /// Streams that the application does not read may occupy more than half of the window. What it reads on others then
    /// never amounts to half a window, and both ends would wait for each other. So a blocked peer gets each credit, but
    /// not at once: many small limits would lead to many small packets.
    ///
    /// Returns true for the first report of a limit, of which there are no more than limits.
    pub(super) fn on_blocked(&mut self, now: Time, limit: u64) -> bool {
        if limit != self.announced {
            return false;
        }
        let is_first = !std::mem::replace(&mut self.is_blocked, true);
        self.wait(now);
        is_first
    }

    /// Sets the time of the next announcement to a blocked peer, if there is any credit to announce.
    fn wait(&mut self, now: Time) {
        if self.is_blocked && !self.is_due && self.patience.is_none() && self.limit().is_some() {
            self.patience = Some(now + PATIENCE);
        }
    }

    /// Returns the time of the next [`on_timeout`](Self::on_timeout).
    pub(super) const fn next_timeout(&self) -> Option<Time> {
        self.patience
    }

    /// The limit is due from then on, however long the CONNECT stream accepts no content. A time that stays in the past
    /// would make the caller's timer expire again and again.
    pub(super) fn on_timeout(&mut self, now: Time) {
        if self.patience.take_if(|due| *due <= now).is_some() {
            self.is_due = true;
        }
    }

    /// Returns true if a limit is due.
    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// Returns the limit to announce, if one is due. It is the newest one, however many were due before.
    pub(super) fn announcement(&mut self) -> Option<u64> {
        if !std::mem::take(&mut self.is_due) {
            return None;
        }
        self.patience = None;
        let limit = self.limit()?;
        self.announced = limit;
        self.is_blocked = false;
        Some(limit)
    }

    /// Returns the present limit, if it is above the announced one.
    fn limit(&self) -> Option<u64> {
        let limit = self.consumed.saturating_add(self.window).min(MAX_VARINT);
        (limit > self.announced).then_some(limit)
    }
}

/// The streams of the peer in one direction. The limit follows the streams that have ended.
#[derive(Debug)]
pub(super) struct StreamWindow {
    window: u64,
    opened: u64,
    ended: u64,
    announced: u64,
    /// The peer has reported that the announced limit holds it back.
    is_blocked: bool,
}

impl StreamWindow {
    pub(super) const fn new(window: u64) -> Self {
        let announced = if window < MAX_STREAMS {
            window
        } else {
            MAX_STREAMS
        };
        Self {
            window: announced,
            opened: 0,
            ended: 0,
            announced,
            is_blocked: false,
        }
    }

    /// Counts a stream. Returns false if it exceeds the announced limit.
    pub(super) const fn open(&mut self) -> bool {
        self.opened += 1;
        self.opened <= self.announced
    }

    pub(super) fn close(&mut self) {
        self.ended = self.opened.min(self.ended + 1);
    }

    /// Processes a report that `limit` holds the peer back. Returns true for the first report of a limit.
    pub(super) fn on_blocked(&mut self, limit: u64) -> bool {
        limit == self.announced && !std::mem::replace(&mut self.is_blocked, true)
    }

    /// Returns the limit to announce, if it has grown by a quarter of the window. A blocked peer gets credit for each
    /// stream that has ended, because the others may stay open.
    pub(super) fn announcement(&mut self) -> Option<u64> {
        let limit = self.next_limit()?;
        self.is_blocked = false;
        self.announced = limit;
        Some(limit)
    }

    /// Returns the [announcement](Self::announcement) that is due.
    pub(super) fn next_limit(&self) -> Option<u64> {
        let limit = (self.ended + self.window).min(MAX_STREAMS);
        let growth = limit.saturating_sub(self.announced);
        let step = match self.is_blocked {
            true => 1,
            false => (self.window / 4).max(1),
        };
        (growth >= step).then_some(limit)
    }
}

/// Time for which a blocked peer waits for credit of less than half a window (limit K588).
const PATIENCE: Duration = Duration::from_millis(10);
