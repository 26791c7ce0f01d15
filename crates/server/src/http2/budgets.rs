//! Limits on useless work of an HTTP/2 connection, as over HTTP/3 (limits K17, K270, K320).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use courser_base::Time;
use courser_http3_tokio::hooks::{CancellationBudget, FrameBudget};
use tokio::time::Instant;

/// A switch that refuses new requests of an HTTP/2 connection. Clones share the switch.
#[derive(Clone, Default, Debug)]
pub(crate) struct Refusing(Arc<AtomicBool>);

impl Refusing {
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Relaxed)
    }

    fn set(&self, is_on: bool) {
        self.0.store(is_on, Relaxed);
    }
}

/// The budgets of an HTTP/2 connection.
///
/// hyper and h2 limit how many cancelled requests are pending, but not how many there are in total. If a client
/// cancels more requests than its completed ones offset, the server first reads from it more slowly, then
/// refuses its requests with REFUSED_STREAM, and finally closes the connection with ENHANCE_YOUR_CALM. It also
/// closes connections of clients that send mostly frames without progress, which h2 does not count.
#[derive(Debug)]
pub(crate) struct Budgets {
    began: Instant,
    frames: FrameBudget,
    requests: CancellationBudget,
    refusing: Refusing,
    /// Requests that were cancelled with little budget left and did not cause a pause yet.
    unpaused: u32,
    is_exhausted: bool,
}

impl Budgets {
    pub(crate) fn new(refusing: Refusing) -> Self {
        let start = Time::from_nanos(0);
        Self {
            began: Instant::now(),
            frames: FrameBudget::new(start),
            requests: CancellationBudget::with_burst(start, CANCELLATION_BURST),
            refusing,
            unpaused: 0,
            is_exhausted: false,
        }
    }

    /// Returns true if the connection must be closed.
    pub(crate) const fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Returns how long reading should pause, and clears that time.
    pub(crate) fn take_pause(&mut self) -> Option<Duration> {
        let cancelled = std::mem::take(&mut self.unpaused);
        (cancelled > 0).then(|| (PAUSE * cancelled).min(LONGEST_PAUSE))
    }

    /// Accepts requests again if the budget has recovered with time. Call it before reading.
    pub(crate) fn on_time(&mut self) {
        if self.refusing.is_on() {
            let now = self.now();
            self.refusing.set(!self.requests.accepts(now));
        }
    }

    /// Counts a request of the client.
    pub(crate) const fn on_request(&mut self) {
        self.frames.on_section();
        self.frames.on_request();
    }

    /// Counts the start of a response.
    pub(crate) const fn on_answered(&mut self) {
        self.frames.on_section();
        self.requests.on_answered();
    }

    /// Counts content that is sent in a DATA frame. Clients grant credit for it, and measure their path with
    /// PING frames.
    pub(crate) fn on_content(&mut self, len: u32) {
        if len > 0 {
            self.frames.earn(FRAMES_PER_DATA + len / BYTES_PER_FRAME);
        }
    }

    /// Counts a request that the client caused to end before its response started.
    pub(crate) fn on_cancelled(&mut self) {
        let now = self.now();
        self.is_exhausted |= self.requests.spend(now).is_err();
        if self.requests.is_low() {
            self.unpaused += 1;
        }
        if !self.requests.has_reserve() {
            self.refusing.set(true);
        }
    }

    /// Counts a frame of the client without progress.
    pub(crate) fn on_frame(&mut self) {
        let now = self.now();
        self.is_exhausted |= self.frames.spend(now).is_err();
    }

    /// Counts a frame that changes the priority of a request.
    pub(crate) fn on_priority(&mut self) {
        let now = self.now();
        self.is_exhausted |= self.frames.spend_update(now).is_err();
    }

    /// Returns the used amounts of the frame, priority update and cancellation budgets.
    #[cfg(test)]
    pub(crate) fn used(&self) -> (u64, u64, u64) {
        let (frames, updates) = self.frames.used();
        (frames, updates, self.requests.used())
    }

    fn now(&self) -> Time {
        Time::from_nanos(0) + self.began.elapsed()
    }
}

/// Number of requests that may be cancelled before any offset; half of them slow the client down (limit K320).
/// Over HTTP/3 the transport slows down after 800, before the requests are sent (limit K15). Here all tiles of a
/// map that is dragged several times in a second have been requested.
const CANCELLATION_BURST: u32 = 2000;
/// Number of frames without progress that a DATA frame with content offsets, in addition to those for its length
/// (limit K320).
const FRAMES_PER_DATA: u32 = 4;
/// Number of content bytes that offset one frame: clients grant credit in steps of 4 KiB or more, for the stream
/// and for the connection (limit K320).
const BYTES_PER_FRAME: u32 = 512;

/// Pause of reading for each request that is cancelled with little budget left (limit K320). Over HTTP/3 the
/// transport grants such clients 20 streams per 100 ms (limit K15).
const PAUSE: Duration = Duration::from_millis(5);
/// Longest pause, because the unread bytes may contain credit for other requests (limit K320).
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
