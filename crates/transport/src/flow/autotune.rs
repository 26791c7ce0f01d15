//! Growth of a receive window.

use std::time::Duration;

use courser_base::Time;

use super::window_budget::{Draw, WindowBudget};

/// The size of a receive window, doubled while the window holds the sender back.
///
/// A sender that is limited only by the window moves one window per round trip. If it moves a
/// quarter of one or more, the window may soon be what limits it, so it doubles up to the
/// maximum: a fast path is never held back, even with a queue as long as itself. A window that is large enough, or an application that reads slowly, takes
/// longer and leaves the size alone.
#[derive(Debug)]
pub(super) struct Autotune {
    window: u64,
    max: u64,
    /// When the part of the window that is being consumed now began.
    since: Option<Time>,
    /// Growth is drawn from here; a stream's is bounded by its connection's.
    draw: Option<Draw>,
}

impl Autotune {
    /// Starts at `window`, grows up to `max`.
    pub(super) fn new(window: u64, max: u64) -> Self {
        Self {
            window,
            max: max.max(window),
            since: None,
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
        // A quarter of the window per round trip, without a division.
        let quarter = |since| {
            let elapsed = u128::from(self.window) * now.saturating_since(since).as_nanos();
            elapsed < u128::from(consumed) * 4 * rtt.as_nanos()
        };
        if self.since.is_some_and(quarter) {
            let next = self.window.saturating_mul(2).min(self.max);
            let growth = next - self.window;
            if self.draw.as_mut().is_none_or(|draw| draw.take(growth)) {
                self.window = next;
            }
        }
        self.since = Some(now);
    }
}

/// From this size on, twice as many frames cost nothing that could be measured.
const LARGE: u64 = 1 << 20;

#[cfg(test)]
mod tests;
