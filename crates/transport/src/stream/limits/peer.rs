//! Streams that the peer opens. RFC 9000 §4.6.

use std::time::Duration;

use courser_base::{RangeSet, Time};
use courser_wire::MAX_STREAMS;

use crate::error::TransportError;

/// The streams of one direction that the peer opens.
///
/// A stream that was opened only by the use of a higher number (RFC 9000 §3.2)is only a
/// number in `implied` until a frame names it or the application accepts it (attack A27).
#[derive(Debug)]
pub(in crate::stream) struct PeerStreams {
    /// Streams that the peer may have open at a time.
    window: u64,
    /// The limit announced to the peer.
    announced: u64,
    /// All lower indices are open or have ended.
    opened: u64,
    /// All lower indices were passed to the application.
    accepted: u64,
    /// Number of ended streams for which the peer got credit.
    credited: u64,
    implied: RangeSet,
    cancelled: CancelledCredit,
    /// True if the application found nothing to accept and waits for an event.
    is_waiting: bool,
    /// The time at which a frame last announced the limit.
    announced_at: Time,
    /// The largest limit whose announcement was acknowledged.
    acked_limit: u64,
}

/// Whether the state of a peer's stream has to be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::stream) enum Use {
    /// The stream has no state yet.
    New,
    /// The stream has a state, or has ended.
    Known,
}

impl PeerStreams {
    /// Returns the number of streams opened so far.
    pub(in crate::stream) const fn opened(&self) -> u64 {
        self.opened
    }

    /// Returns the limit announced to the peer.
    pub(in crate::stream) const fn announced(&self) -> u64 {
        self.announced
    }

    /// Starts with `window` streams allowed, as in our transport parameters.
    pub(in crate::stream) fn new(window: u64) -> Self {
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
            announced_at: Time::ZERO,
            acked_limit: window,
        }
    }

    /// Changes how many streams the peer may have open. Limits that were announced stay valid.
    pub(in crate::stream) fn set_window(&mut self, window: u64) {
        self.window = window.min(MAX_STREAMS);
    }

    /// Raises how many streams the peer may have open to at least `window`.
    pub(in crate::stream) fn raise_window(&mut self, window: u64) {
        self.set_window(window.max(self.window));
    }

    /// Opens the stream with this index, which a frame named, and all below it, if they are not
    /// open yet.
    ///
    /// # Errors
    ///
    /// STREAM_LIMIT_ERROR at or past the limit that we announced.
    pub(in crate::stream) fn on_use(&mut self, index: u64) -> Result<Use, TransportError> {
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

    /// Returns the next stream for the application, in order, and whether its state has to be created.
    pub(in crate::stream) fn accept(&mut self) -> Option<(u64, Use)> {
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

    /// Returns true once if the peer has opened streams and the application waits for them.
    pub(in crate::stream) fn take_opened(&mut self) -> bool {
        self.accepted < self.opened && std::mem::take(&mut self.is_waiting)
    }

    /// Counts a stream as ended. The peer gets credit for it at once, or later if the stream was cancelled
    /// and many others were too.
    pub(in crate::stream) fn on_retired(&mut self, now: Time, was_cancelled: bool) {
        if !was_cancelled {
            self.cancelled.on_completed();
            self.credited += 1;
        } else if self.cancelled.is_granted(now) {
            self.credited += 1;
        }
    }

    /// Returns the time at which the peer gets credit for cancelled streams.
    pub(in crate::stream) fn next_timeout(&self) -> Option<Time> {
        self.cancelled.next_timeout()
    }

    /// Grants the credit that is due for cancelled streams.
    pub(in crate::stream) fn on_timeout(&mut self, now: Time) {
        self.credited += self.cancelled.on_timeout(now);
    }

    /// Returns the number of open streams, including those that have not been accepted.
    pub(in crate::stream) const fn count(&self) -> u64 {
        self.opened - self.credited - self.cancelled.parked
    }

    /// Returns true if a larger limit is worth a frame: an eighth of the window is free again, or
    /// the peer has nearly used up the announced limit. Does not wait for STREAMS_BLOCKED
    /// (RFC 9000 §4.6).
    pub(in crate::stream) fn is_update_due(&self) -> bool {
        let gain = self.target().saturating_sub(self.announced);
        let eighth = (self.window / 8).max(1);
        gain >= eighth || (gain > 0 && self.announced - self.opened <= eighth)
    }

    /// Returns the limit to announce now; it never falls.
    pub(in crate::stream) fn announce(&mut self, now: Time) -> u64 {
        self.announced_at = now;
        self.announced = self.announced.max(self.target());
        self.announced
    }

    /// Returns true if the peer reports that `known` is its limit although the frame that raised it
    /// was sent a round trip ago and must have arrived by now.
    pub(in crate::stream) fn is_limit_overdue(&self, now: Time, rtt: Duration, known: u64) -> bool {
        known < self.announced && now >= self.announced_at + rtt
    }

    /// Processes the acknowledgement of a frame with this limit.
    pub(in crate::stream) fn on_limit_acked(&mut self, limit: u64) {
        self.acked_limit = self.acked_limit.max(limit);
    }

    /// Returns true if the frame with the latest limit was acknowledged.
    pub(in crate::stream) const fn is_limit_acked(&self) -> bool {
        self.acked_limit >= self.announced
    }

    fn target(&self) -> u64 {
        self.window.saturating_add(self.credited).min(MAX_STREAMS)
    }
}

/// Limits the credit for streams that the peer cancelled to a number per interval (attack limit
/// K15).
///
/// Opening and cancelling streams is cheap for the peer and costs the application work, and MAX_STREAMS
/// bounds only how many are open at a time. Each completed stream, and each interval, earns full credit for
/// some cancelled ones. A peer that does little but cancel uses this up and then gets less credit.
#[derive(Debug)]
struct CancelledCredit {
    since: Time,
    granted: u64,
    parked: u64,
    /// The cancelled streams that still get the full credit.
    paid: u64,
}

impl Default for CancelledCredit {
    fn default() -> Self {
        Self {
            since: Time::ZERO,
            granted: 0,
            parked: 0,
            paid: PAID_AT_FIRST,
        }
    }
}

impl CancelledCredit {
    const fn on_completed(&mut self) {
        self.paid = self.paid.saturating_add(PAID_BY_COMPLETED);
    }

    fn is_granted(&mut self, now: Time) -> bool {
        self.begin_interval(now);
        if self.parked == 0 && self.grant(1) == 1 {
            return true;
        }
        self.parked += 1;
        false
    }

    fn begin_interval(&mut self, now: Time) {
        if now >= self.since + INTERVAL {
            if self.paid < PAID_AT_FIRST {
                let passed = (now - self.since).as_nanos() / INTERVAL.as_nanos();
                let earned = u64::try_from(passed).map_or(PAID_AT_FIRST, |passed| {
                    passed.saturating_mul(PAID_BY_INTERVAL)
                });
                self.paid = self.paid.saturating_add(earned).min(PAID_AT_FIRST);
            }
            (self.since, self.granted) = (now, 0);
        }
    }

    /// Grants up to `requested` streams of this interval.
    fn grant(&mut self, requested: u64) -> u64 {
        let left = CANCELLED_PER_INTERVAL - self.granted;
        let unpaid = UNPAID_PER_INTERVAL.saturating_sub(self.granted);
        let granted = requested.min(left).min(self.paid.max(unpaid));
        self.paid = self.paid.saturating_sub(granted);
        self.granted += granted;
        granted
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
        let freed = self.grant(self.parked);
        self.parked -= freed;
        freed
    }
}

const CANCELLED_PER_INTERVAL: u64 = 100;
/// The credit of a peer for which nothing is paid any more. Larger than [`PAID_BY_INTERVAL`], so that a
/// flood goes on until it uses up the budgets of HTTP/3, which end the connection.
const UNPAID_PER_INTERVAL: u64 = 20;
const INTERVAL: Duration = Duration::from_millis(100);
/// Cancelled streams with full credit at the start of a connection.
const PAID_AT_FIRST: u64 = 800;
/// Cancelled streams with full credit for each completed stream.
const PAID_BY_COMPLETED: u64 = 4;
/// Cancelled streams with full credit for each interval.
const PAID_BY_INTERVAL: u64 = 5;

#[cfg(test)]
mod tests;
