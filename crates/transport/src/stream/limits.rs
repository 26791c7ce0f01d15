//! How many streams may exist, both ways. RFC 9000 §4.6.

use std::time::Duration;

use courser_base::{RangeSet, Time};
use courser_wire::MAX_STREAMS;

use crate::error::TransportError;

/// Streams of one kind that we open.
#[derive(Debug, Default)]
pub(super) struct LocalStreams {
    /// Streams opened so far, which is also the next index.
    opened: u64,
    closed: u64,
    /// What the peer allows; unknown until its transport parameters are here.
    limit: Option<u64>,
    /// The limit that STREAMS_BLOCKED was queued for; one frame per limit is enough.
    signalled: Option<u64>,
    /// STREAMS_BLOCKED for limits below this has been acknowledged.
    heard_below: u64,
    /// The application was refused a stream and waits to be told.
    is_waiting: bool,
}

impl LocalStreams {
    /// The index of a new stream, if the peer allows one.
    pub(super) fn open(&mut self) -> Option<u64> {
        if self.opened >= self.limit.unwrap_or(0) {
            self.is_waiting = true;
            return None;
        }
        self.opened += 1;
        Some(self.opened - 1)
    }

    /// True while a stream is open.
    pub(super) const fn are_open(&self) -> bool {
        self.opened > self.closed
    }

    /// True when the stream with this index was opened, and maybe closed since.
    #[inline]
    pub(super) const fn was_opened(&self, index: u64) -> bool {
        index < self.opened
    }

    /// A stream is gone.
    pub(super) fn on_retired(&mut self) {
        self.closed += 1;
    }

    /// Streams that are not gone.
    pub(super) const fn count(&self) -> u64 {
        self.opened - self.closed
    }

    /// How many streams the peer allows, once it is known.
    pub(super) const fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// The peer allows `limit` streams; true when the application waits for that. A limit that
    /// is not larger has no effect.
    pub(super) fn on_limit(&mut self, limit: u64) -> bool {
        let limit = limit.min(MAX_STREAMS);
        if self.limit.is_none_or(|old| limit > old) {
            self.limit = Some(limit);
        }
        self.limit > Some(self.opened) && std::mem::take(&mut self.is_waiting)
    }

    /// True once per limit, when it keeps the application from opening a stream.
    pub(super) fn take_signal(&mut self) -> bool {
        let due = self.blocked_at().is_some() && self.signalled != self.limit;
        if due {
            self.signalled = self.limit;
        }
        due
    }

    /// STREAMS_BLOCKED with this limit was acknowledged.
    pub(super) fn on_blocked_heard(&mut self, limit: u64) {
        self.heard_below = self.heard_below.max(limit.saturating_add(1));
    }

    /// True when the peer knows that the limit of today is in the way.
    pub(super) fn is_heard(&self) -> bool {
        self.limit.is_some_and(|limit| limit < self.heard_below)
    }

    /// STREAMS_BLOCKED got lost or should be repeated.
    pub(super) fn forget_signal(&mut self) {
        self.signalled = None;
    }

    /// What STREAMS_BLOCKED has to say, while it is true.
    pub(super) fn blocked_at(&self) -> Option<u64> {
        self.limit
            .filter(|&limit| self.is_waiting && self.opened >= limit)
    }
}

/// Streams of one kind that the peer opens.
///
/// A stream that was opened only because one with a higher number was (RFC 9000 §3.2) is one
/// number in `implied` until data for it arrives or the application accepts it (attack A27).
#[derive(Debug)]
pub(super) struct PeerStreams {
    /// Streams the peer may have at a time.
    window: u64,
    /// The limit the peer knows.
    announced: u64,
    /// Indices below are open, or were.
    opened: u64,
    /// Indices below were handed to the application.
    accepted: u64,
    /// Streams that are gone and whose place is free again.
    credited: u64,
    implied: RangeSet,
    cancelled: CancelledCredit,
    /// The application found nothing to accept and waits to be told.
    is_waiting: bool,
    /// When a frame last told the limit.
    told: Time,
    /// The largest limit that the peer is known to have heard.
    heard: u64,
}

/// What a frame that names a stream of the peer means for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// The stream begins.
    New,
    /// It is open, or was.
    Known,
}

impl PeerStreams {
    /// The limit the peer knows.
    pub(super) const fn announced(&self) -> u64 {
        self.announced
    }

    /// Starts with `window` streams allowed, as our transport parameters say.
    pub(super) fn new(window: u64) -> Self {
        let window = window.min(MAX_STREAMS);
        Self {
            window,
            announced: window,
            opened: 0,
            accepted: 0,
            credited: 0,
            implied: RangeSet::new(),
            cancelled: CancelledCredit::default(),
            is_waiting: true,
            told: Time::ZERO,
            heard: window,
        }
    }

    /// A frame names the stream with this index: opens it, and all below it, if need be.
    ///
    /// # Errors
    ///
    /// STREAM_LIMIT_ERROR at or past the limit we announced.
    pub(super) fn on_use(&mut self, index: u64) -> Result<Use, TransportError> {
        if index >= self.announced {
            return Err(TransportError::stream_limit(format!(
                "stream number {index} exceeds the {} allowed",
                self.announced
            )));
        }
        if index >= self.opened {
            self.implied.insert(self.opened..index);
            self.opened = index + 1;
            return Ok(Use::New);
        }
        Ok(if self.take_implied(index) {
            Use::New
        } else {
            Use::Known
        })
    }

    fn take_implied(&mut self, index: u64) -> bool {
        let is_implied = self.implied.contains(index);
        if is_implied {
            self.implied.remove(index..index + 1);
        }
        is_implied
    }

    /// The next stream for the application, in order, and whether it begins only now.
    pub(super) fn accept(&mut self) -> Option<(u64, Use)> {
        if self.accepted == self.opened {
            self.is_waiting = true;
            return None;
        }
        let index = self.accepted;
        self.accepted += 1;
        Some((
            index,
            if self.take_implied(index) {
                Use::New
            } else {
                Use::Known
            },
        ))
    }

    /// True once when the application waits for streams and there are some.
    pub(super) fn take_opened(&mut self) -> bool {
        self.accepted < self.opened && std::mem::take(&mut self.is_waiting)
    }

    /// A stream is gone. Its place is free at once, or a little later if it was cancelled and
    /// many were.
    pub(super) fn on_retired(&mut self, now: Time, was_cancelled: bool) {
        if !was_cancelled || self.cancelled.is_granted(now) {
            self.credited += 1;
        }
    }

    /// When places of cancelled streams become free.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.cancelled.next_timeout()
    }

    /// Frees the places whose time has come.
    pub(super) fn on_timeout(&mut self, now: Time) {
        self.credited += self.cancelled.on_timeout(now);
    }

    /// Streams that are open, those included that nobody has seen yet.
    pub(super) const fn count(&self) -> u64 {
        self.opened - self.credited - self.cancelled.parked
    }

    /// True when a larger limit is worth a frame: an eighth of the window is free again, or the
    /// peer has nearly used up what it knows of. It need not ask (RFC 9000 §4.6).
    pub(super) fn wants_update(&self) -> bool {
        let gain = self.target() - self.announced;
        let eighth = (self.window / 8).max(1);
        gain >= eighth || (gain > 0 && self.announced - self.opened <= eighth)
    }

    /// The limit to announce now; it never falls.
    pub(super) fn announce(&mut self, now: Time) -> u64 {
        self.told = now;
        self.announced = self.target();
        self.announced
    }

    /// True when the peer says that `known` is its limit, and what raised it must have reached it
    /// by now: it was told a round trip ago.
    pub(super) fn is_news(&self, now: Time, rtt: Duration, known: u64) -> bool {
        known < self.announced && now >= self.told + rtt
    }

    /// A frame with this limit was acknowledged.
    pub(super) fn on_limit_heard(&mut self, limit: u64) {
        self.heard = self.heard.max(limit);
    }

    /// True when the peer knows the limit as last announced.
    pub(super) const fn is_heard(&self) -> bool {
        self.heard >= self.announced
    }

    /// True while the peer has opened streams that the application has not taken.
    pub(super) const fn has_opened(&self) -> bool {
        self.accepted < self.opened
    }

    fn target(&self) -> u64 {
        self.window.saturating_add(self.credited).min(MAX_STREAMS)
    }
}

/// Credit for streams that the peer cancelled: at most so many per interval (attack limit K15).
///
/// Opening and cancelling streams is cheap for the peer and work for the application, and
/// MAX_STREAMS alone would bound only how many are open at a time.
#[derive(Debug, Default)]
struct CancelledCredit {
    since: Time,
    granted: u64,
    parked: u64,
}

impl CancelledCredit {
    fn is_granted(&mut self, now: Time) -> bool {
        self.begin_interval(now);
        if self.granted < CANCELLED_PER_INTERVAL && self.parked == 0 {
            self.granted += 1;
            return true;
        }
        self.parked += 1;
        false
    }

    fn begin_interval(&mut self, now: Time) {
        if now >= self.since + INTERVAL {
            (self.since, self.granted) = (now, 0);
        }
    }

    const fn has_parked(&self) -> bool {
        self.parked > 0
    }

    fn next_timeout(&self) -> Option<Time> {
        self.has_parked().then(|| self.since + INTERVAL)
    }

    fn on_timeout(&mut self, now: Time) -> u64 {
        if !self.has_parked() {
            return 0;
        }
        self.begin_interval(now);
        let freed = self.parked.min(CANCELLED_PER_INTERVAL - self.granted);
        self.parked -= freed;
        self.granted += freed;
        freed
    }
}

const CANCELLED_PER_INTERVAL: u64 = 100;
const INTERVAL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
