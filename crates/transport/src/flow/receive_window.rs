//! The credit that we grant the peer.

use std::time::Duration;

use courser_base::Time;
use courser_wire::MAX_VARINT;

use super::autotune::Autotune;
use super::window_budget::Draw;
use crate::error::TransportError;

/// Credit that we granted the peer for one stream or for the connection. RFC 9000 §4.1.
///
/// For a stream `received` is the highest offset seen, for the connection the sum of the highest
/// offsets of all streams. `consumed` counts the bytes that have left our buffers: read by the
/// application, or discarded. Bytes that the application [holds](ReceiveWindow::hold) have left
/// them too, but earn the peer no credit.
#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    limit: u64,
    received: u64,
    consumed: u64,
    /// Consumed bytes that the application still holds, and that are not credited.
    held: u64,
    /// The credited bytes when the limit was last raised.
    announced: u64,
    /// Received and unconsumed bytes that wait only for the application.
    readable: u64,
    autotune: Autotune,
    /// The time at which a frame last announced the limit.
    announced_at: Time,
    /// The largest limit whose announcement was acknowledged.
    acked_limit: u64,
}

impl ReceiveWindow {
    /// Starts with `window` bytes allowed, as in our transport parameters.
    pub(crate) fn new(window: u64, max: u64) -> Self {
        let window = window.min(MAX_VARINT);
        Self {
            limit: window,
            received: 0,
            consumed: 0,
            held: 0,
            announced: 0,
            readable: 0,
            autotune: Autotune::new(window, max.min(MAX_VARINT)),
            announced_at: Time::ZERO,
            acked_limit: window,
        }
    }

    /// Draws further growth from a budget.
    pub(crate) fn draw_from(&mut self, draw: Draw) {
        self.autotune.draw_from(draw);
    }

    /// Fixes the size of the window. Credit that was announced stays (RFC 9000 §4.1).
    pub(crate) fn set_size(&mut self, window: u64) {
        self.autotune.set_window(window.min(MAX_VARINT));
    }

    /// Returns the present size of the window in bytes.
    #[inline]
    pub(crate) const fn size(&self) -> u64 {
        self.autotune.window()
    }

    /// Returns the bytes counted so far.
    #[inline]
    pub(crate) const fn received(&self) -> u64 {
        self.received
    }

    /// Returns the bytes that the application can read now.
    pub(crate) const fn readable(&self) -> u64 {
        self.readable
    }

    /// Returns the bytes received and not consumed.
    pub(crate) const fn unconsumed(&self) -> u64 {
        self.received - self.consumed
    }

    /// Returns the consumed bytes that the application holds and that are not credited.
    pub(crate) const fn held(&self) -> u64 {
        self.held
    }

    /// Checks that `additional` more bytes respect the limit.
    ///
    /// # Errors
    ///
    /// FLOW_CONTROL_ERROR when they do not (RFC 9000 §4.1).
    #[inline]
    pub(crate) fn check(&self, additional: u64) -> Result<(), TransportError> {
        let total = self.received.saturating_add(additional);
        if total > self.limit {
            Err(TransportError::flow_control(total, self.limit))
        } else {
            Ok(())
        }
    }

    /// Counts bytes that passed [`ReceiveWindow::check`].
    #[inline]
    pub(crate) fn on_received(&mut self, now: Time, additional: u64) {
        debug_assert!(self.check(additional).is_ok(), "unchecked bytes");
        self.received = self.received.saturating_add(additional);
        self.autotune.on_received(now);
    }

    /// Counts the bytes of a frame: `len` in total, which make `ordered` more readable.
    #[inline]
    pub(crate) fn on_arrived(&mut self, now: Time, len: u64, ordered: u64) {
        self.readable = self.readable.saturating_add(ordered);
        self.autotune.on_arrived(now, len);
    }

    /// Counts bytes that were read.
    #[inline]
    pub(crate) fn on_consumed(&mut self, len: u64) {
        self.on_discarded(len, len);
    }

    /// Counts bytes that left our buffers, `readable` of which could have been read.
    #[inline]
    pub(crate) fn on_discarded(&mut self, len: u64, readable: u64) {
        debug_assert!(len <= self.unconsumed(), "consumed more than received");
        self.consumed = self.received.min(self.consumed.saturating_add(len));
        self.readable = self.readable.saturating_sub(readable);
    }

    /// Withholds credit for bytes that were consumed, until they are
    /// [released](ReceiveWindow::release).
    pub(crate) fn hold(&mut self, len: u64) {
        self.held = self.held.saturating_add(len);
    }

    /// Credits bytes that were held.
    pub(crate) fn release(&mut self, len: u64) {
        self.held = self.held.saturating_sub(len);
    }

    /// Returns the bytes consumed and not held. Half a window is granted in any case:held bytes
    /// may depend on later bytes, which cannot arrive without credit.
    #[inline]
    const fn credited(&self) -> u64 {
        let max = self.autotune.window() / 2;
        let held = if self.held < max { self.held } else { max };
        self.consumed.saturating_sub(held)
    }

    /// Returns true if enough of the window is used that a frame with a larger limit is due.
    ///
    /// Waiting for a BLOCKED frame instead would cost the sender a round trip (RFC 9000 §4.2).
    #[inline]
    pub(crate) fn is_update_due(&self) -> bool {
        self.has_consumed_step() || self.is_stalled()
    }

    #[inline]
    fn has_consumed_step(&self) -> bool {
        let left = self.limit.saturating_sub(self.credited());
        let window = self.autotune.window();
        left <= window - self.autotune.step() && window > 0 && self.limit < MAX_VARINT
    }

    /// Returns true if more than half of the window is used and a lost packet is the reason: the application has
    /// read nearly all readable bytes, and the others wait for a retransmission.
    #[inline]
    fn is_stalled(&self) -> bool {
        self.autotune.has_measured()
            && self.limit - self.received <= self.autotune.window() / 2
            && self.keeps_up()
            && self.unconsumed() > self.readable
    }

    /// Returns true if the application has read nearly all readable bytes.
    #[inline]
    fn keeps_up(&self) -> bool {
        self.readable <= self.autotune.window() / 8
    }

    /// Returns the limit to announce now; never lower than before (RFC 9000 §4.1).
    pub(crate) fn announce(&mut self, now: Time, rtt: Duration) -> u64 {
        self.announce_within(now, rtt, |_, size| size)
    }

    /// Returns the limit to announce now. A window that is about to grow gets the size that `bound` returns for its present
    /// and its next one, which is between both.
    pub(crate) fn announce_within(
        &mut self,
        now: Time,
        rtt: Duration,
        bound: impl FnOnce(u64, u64) -> u64,
    ) -> u64 {
        self.announced_at = now;
        let before = self.size();
        let has_step = self.has_consumed_step();
        if has_step {
            let credited = self.credited();
            let consumed = credited.saturating_sub(self.announced);
            self.announced = credited;
            let keeps_up = self.keeps_up();
            self.autotune.on_consumed(now, rtt, consumed, keeps_up);
        } else if self.is_stalled() {
            self.autotune.on_stalled(now, rtt);
        }
        let grows = self.size() > before;
        if grows {
            let size = bound(before, self.size());
            self.autotune.shrink_to(size.max(before));
        }
        if has_step || grows {
            let limit = self.credited().saturating_add(self.size());
            self.limit = self.limit.max(limit.min(MAX_VARINT));
        }
        self.limit
    }

    /// Grows to `size` if the maximum and the budget allow it, or as far as they do. Returns the size.
    pub(crate) fn grow_to(&mut self, now: Time, size: u64) -> u64 {
        self.autotune.grow_to(now, size);
        self.size()
    }

    /// Returns true if the peer reports that `known` is its limit although the frame that raised it
    /// was sent a round trip ago and must have arrived by now.
    pub(crate) fn is_limit_overdue(&self, now: Time, rtt: Duration, known: u64) -> bool {
        known < self.limit && now >= self.announced_at + rtt
    }

    /// Processes the acknowledgement of a frame with this limit.
    pub(crate) fn on_limit_acked(&mut self, limit: u64) {
        self.acked_limit = self.acked_limit.max(limit);
    }

    /// Returns true if the frame with the latest limit was acknowledged.
    pub(crate) const fn is_limit_acked(&self) -> bool {
        self.acked_limit >= self.limit
    }

    /// Returns the limit as last announced.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }
}

#[cfg(test)]
mod tests;
