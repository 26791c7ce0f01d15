//! Growth of a receive window.

use std::time::Duration;

use courser_base::Time;

use super::window_budget::{Draw, WindowBudget};

/// The size of a receive window, doubled while the window holds the sender back.
///
/// A sender that is limited only by the window moves one window per round trip. If half of it
/// was consumed within two round trips, the window is (nearly) what limits it, so it doubles
/// up to the maximum. A window that is large enough, or an application that reads slowly, takes
/// longer and leaves the size alone.
#[derive(Debug)]
pub(super) struct Autotune {
    window: u64,
    max: u64,
    /// When the half window that is being consumed now began.
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

    /// The first bytes arrive: the first half window begins.
    #[inline]
    pub(super) fn on_received(&mut self, now: Time) {
        if self.since.is_none() {
            self.since = Some(now);
        }
    }

    /// Half a window was consumed and more is about to be announced.
    pub(super) fn on_half_consumed(&mut self, now: Time, rtt: Duration) {
        if let Some(since) = self.since
            && now.saturating_since(since) < rtt.saturating_mul(2)
        {
            let next = self.window.saturating_mul(2).min(self.max);
            let growth = next - self.window;
            if self.draw.as_mut().is_none_or(|draw| draw.take(growth)) {
                self.window = next;
            }
        }
        self.since = Some(now);
    }
}

#[cfg(test)]
mod tests;
