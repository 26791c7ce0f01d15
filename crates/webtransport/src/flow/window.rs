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
    /// The time of the last announcement.
    updated: Option<Time>,
    is_due: bool,
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
        let left = self.announced.saturating_sub(self.consumed);
        if self.is_due || self.window == 0 || left > self.window / 2 {
            return;
        }
        let is_fast = self.updated.is_some_and(|updated| now - updated < 2 * rtt);
        if is_fast {
            self.window = self.window.saturating_mul(2).min(self.longest);
        }
        self.updated = Some(now);
        self.is_due = true;
    }

    /// Returns the limit to announce, if one is due. It is the newest one, however many were due before.
    pub(super) fn announcement(&mut self) -> Option<u64> {
        if !self.is_due {
            return None;
        }
        self.is_due = false;
        let limit = self.consumed.saturating_add(self.window).min(MAX_VARINT);
        (limit > self.announced).then(|| {
            self.announced = limit;
            limit
        })
    }
}

/// The streams of the peer in one direction. The limit follows the streams that have ended.
#[derive(Debug)]
pub(super) struct StreamWindow {
    window: u64,
    opened: u64,
    ended: u64,
    announced: u64,
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

    /// Returns the limit to announce, if it has grown by a quarter of the window.
    pub(super) fn announcement(&mut self) -> Option<u64> {
        let limit = (self.ended + self.window).min(MAX_STREAMS);
        let growth = limit.saturating_sub(self.announced);
        if growth < (self.window / 4).max(1) {
            return None;
        }
        self.announced = limit;
        Some(limit)
    }
}
