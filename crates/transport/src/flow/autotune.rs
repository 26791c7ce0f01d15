//! Growth of a receive window.

use std::time::Duration;

use courser_base::Time;

use super::window_budget::{Draw, WindowBudget};

/// The size of a receive window, doubled while the window holds the sender back.
///
/// A sender that is limited only by the window moves one window per round trip. If it moves a
/// quarter of one or more, the window may soon be what limits it, so it doubles up to the
/// maximum: a fast path is never held back, even with a queue as long as itself. A window that is
/// large enough, or an application that reads slowly, takes longer and leaves the size alone.
///
/// What is consumed says nothing while a lost packet holds back all that arrives behind it, for a
/// round trip or, if the repair is lost too, for several. Then the same is asked of what arrives:
/// a sender in slow start would meet the end of a window that only reading can widen.
#[derive(Debug)]
pub(super) struct Autotune {
    window: u64,
    max: u64,
    /// When the part of the window that is being consumed now began.
    since: Option<Time>,
    /// Bytes that arrived, in any order, since the size was last considered.
    arrived: Option<Arrived>,
    /// Growth is drawn from here; a stream's is bounded by its connection's.
    draw: Option<Draw>,
}

#[derive(Clone, Copy, Debug)]
struct Arrived {
    since: Time,
    bytes: u64,
}

impl Autotune {
    /// Starts at `window`, grows up to `max`.
    pub(super) fn new(window: u64, max: u64) -> Self {
        Self {
            window,
            max: max.max(window),
            since: None,
            arrived: None,
            draw: None,
        }
    }

    /// Draws growth from a budget from now on.
    pub(super) fn draw_from(&mut self, budget: WindowBudget) {
        self.draw = Some(Draw::new(budget));
    }

    /// The size of today.
    #[inline]
    pub(super) const fn window(&self) -> u64 {
        self.window
    }

    /// The first bytes arrive: the first part of the window begins.
    #[inline]
    pub(super) fn on_received(&mut self, now: Time) {
        if self.since.is_none() {
            self.since = Some(now);
        }
    }

    /// Bytes arrive, whether they can be read yet or not.
    #[inline]
    pub(super) fn on_arrived(&mut self, now: Time, bytes: u64) {
        let start = Arrived {
            since: now,
            bytes: 0,
        };
        self.arrived.get_or_insert(start).bytes += bytes;
    }

    /// Enough has arrived since the size was last considered to do so again.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        let arrived = self.arrived.map_or(0, |arrived| arrived.bytes);
        arrived >= self.window / 8 && self.window < self.max
    }

    /// This much is consumed before more is announced: half of a small window, and a quarter of
    /// a large one, so that three quarters of it can be under way.
    #[inline]
    pub(super) const fn step(&self) -> u64 {
        if self.window >= LARGE {
            self.window / 4
        } else {
            self.window.div_ceil(2)
        }
    }

    /// At least a [step](Self::step) was consumed and more is about to be announced.
    pub(super) fn on_consumed(&mut self, now: Time, rtt: Duration, consumed: u64) {
        if self
            .since
            .is_some_and(|since| self.is_fast(consumed, now - since, rtt))
        {
            self.double();
        }
        self.since = Some(now);
        self.restart(now);
    }

    /// Nothing can be consumed for want of what was lost, while more and more arrives behind it.
    pub(super) fn on_held_up(&mut self, now: Time, rtt: Duration) {
        if self
            .arrived
            .is_some_and(|arrived| self.is_fast(arrived.bytes, now - arrived.since, rtt))
        {
            self.double();
        }
        self.restart(now);
    }

    fn restart(&mut self, now: Time) {
        self.arrived = Some(Arrived {
            since: now,
            bytes: 0,
        });
    }

    /// So many bytes in so much time are a quarter of the window per round trip, said without a
    /// division.
    fn is_fast(&self, bytes: u64, elapsed: Duration, rtt: Duration) -> bool {
        let needed = u128::from(self.window) * elapsed.as_nanos();
        needed < u128::from(bytes) * 4 * rtt.as_nanos()
    }

    fn double(&mut self) {
        let next = self.window.saturating_mul(2).min(self.max);
        let growth = next - self.window;
        if self.draw.as_mut().is_none_or(|draw| draw.take(growth)) {
            self.window = next;
        }
    }
}

/// From this size on, twice as many frames cost nothing that could be measured.
const LARGE: u64 = 1 << 20;

#[cfg(test)]
mod tests;
