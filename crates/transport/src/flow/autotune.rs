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
/// What is consumed tells that late. A slow start doubles within the part that is measured, and
/// a lost packet holds back all that arrives behind it, for a round trip or, if its repair is lost
/// too, for several. So the last eighth of a window that arrived is looked at as well, as long as
/// the application leaves little of what it could read.
#[derive(Debug)]
pub(super) struct Autotune {
    window: u64,
    max: u64,
    /// When the part of the window that is being consumed now began.
    since: Option<Time>,
    /// What has been consumed of that part.
    consumed: u64,
    /// Bytes that arrive, in any order.
    arrivals: Arrivals,
    /// Growth is drawn from here; a stream's is bounded by its connection's.
    draw: Option<Draw>,
}

/// Measures how long an eighth of the window takes to arrive.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    /// When the present eighth began, and what has arrived of it.
    since: Option<Time>,
    bytes: u64,
    /// How long the last one took, until that has been looked at.
    latest: Option<Duration>,
}

impl Autotune {
    /// Starts at `window`, grows up to `max`.
    pub(super) fn new(window: u64, max: u64) -> Self {
        Self {
            window,
            max: max.max(window),
            since: None,
            consumed: 0,
            arrivals: Arrivals::default(),
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
        let arrivals = &mut self.arrivals;
        let since = *arrivals.since.get_or_insert(now);
        arrivals.bytes += bytes;
        if arrivals.bytes >= self.window / EIGHTHS {
            *arrivals = Arrivals {
                since: Some(now),
                bytes: 0,
                latest: Some(now - since),
            };
        }
    }

    /// An eighth of the window has arrived since it was last asked whether it is large enough.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.arrivals.latest.is_some() && self.window < self.max
    }

    /// This much is consumed before more is announced: half of a small window, and less of a
    /// large one, so that most of it can be under way. A window is several round trips of data, so
    /// that a frame is under way most of the time: a client that only reads has nothing else that
    /// it would send again from where a NAT has moved it.
    #[inline]
    pub(super) const fn step(&self) -> u64 {
        match self.window {
            HUGE.. => self.window / 16,
            LARGE.. => self.window / 8,
            _ => self.window.div_ceil(2),
        }
    }

    /// This much is consumed before growth is considered: an application that reads in batches
    /// would look fast in a smaller part.
    const fn part(&self) -> u64 {
        match self.window {
            HUGE.. => self.window / 4,
            _ => self.window.div_ceil(2),
        }
    }

    /// At least a [step](Self::step) was consumed and more is about to be announced. `keeps_up`
    /// if the application leaves little of what it can read.
    pub(super) fn on_consumed(&mut self, now: Time, rtt: Duration, consumed: u64, keeps_up: bool) {
        self.consumed += consumed;
        let latest = self.arrivals.latest.take();
        let has_arrived = latest.is_some_and(|eighth| eighth * 2 < rtt);
        let is_part = self.consumed >= self.part();
        if keeps_up && has_arrived || is_part && self.is_consumed_fast(now, rtt) {
            self.double();
        } else if !is_part {
            return;
        }
        self.since = Some(now);
        self.consumed = 0;
    }

    /// A quarter of the window per round trip, said without a division.
    fn is_consumed_fast(&self, now: Time, rtt: Duration) -> bool {
        self.since.is_some_and(|since| {
            let elapsed = u128::from(self.window) * now.saturating_since(since).as_nanos();
            elapsed < u128::from(self.consumed) * 4 * rtt.as_nanos()
        })
    }

    /// Nothing can be consumed for want of what was lost, while more and more arrives behind it.
    /// An eighth per round trip is enough to grow: a repair that is lost as well takes another
    /// round trip, and another one passes until the sender hears of new credit.
    pub(super) fn on_held_up(&mut self, rtt: Duration) {
        let latest = self.arrivals.latest.take();
        if latest.is_some_and(|eighth| eighth < rtt) {
            self.double();
        }
    }

    fn double(&mut self) {
        let next = self.window.saturating_mul(2).min(self.max);
        let growth = next - self.window;
        if self.draw.as_mut().is_none_or(|draw| draw.take(growth)) {
            self.window = next;
        }
    }
}

/// Parts of the window of which each is measured as it arrives.
const EIGHTHS: u64 = 8;

/// From this size on, some more frames cost nothing that could be measured.
const LARGE: u64 = 256 << 10;

/// From this size on a frame is for a megabyte or more, and a window that cannot grow any more is
/// as large as its sender finds it: a sixteenth less than it is.
const HUGE: u64 = 16 << 20;

#[cfg(test)]
mod tests;
