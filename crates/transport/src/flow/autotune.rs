//! Automatic growth of a receive window.

use std::time::Duration;

use courser_base::Time;

use super::window_budget::Draw;

/// The size of a receive window. It doubles while the window limits the sender, as far as the budget for
/// growth allows.
///
/// A sender that is limited only by the window moves one window per round trip. If it moves a
/// quarter of one or more, the window may soon be the limit, so it doubles up to the maximum: a
/// fast path is never held back, even with a queue as long as the path itself. A window that is
/// large enough, or an application that reads slowly, takes longer and leaves the size unchanged.
///
/// Consumed bytes show that late: in slow start the sender doubles its rate within one measurement, and a
/// lost packet delays all bytes behind it for a round trip or, if its retransmission is lost too, for
/// several. So the time that the latest eighth of a window took to arrive is measured as well. It counts if
/// the application leaves few readable bytes unread.
#[derive(Debug)]
pub(super) struct Autotune {
    window: u64,
    max: u64,
    /// The time at which consumption of the current part of the window began.
    since: Option<Time>,
    /// Bytes consumed of that part.
    consumed: u64,
    /// The arrival of bytes, in any order.
    arrivals: Arrivals,
    /// The budget for growth. `None` for a stream, which its connection's window bounds.
    draw: Option<Box<Draw>>,
}

/// Measures how long an eighth of the window takes to arrive.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    /// The time at which the current eighth began, and the bytes that have arrived of it.
    since: Option<Time>,
    bytes: u64,
    /// The time that the previous eighth took, until it has been examined.
    latest: Option<Duration>,
}

impl Autotune {
    /// Starts at `window` and grows up to `max`.
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

    /// Takes the memory for further growth from a budget.
    pub(super) fn draw_from(&mut self, draw: Draw) {
        self.draw = Some(Box::new(draw));
    }

    /// Sets the size, and ends its growth.
    pub(super) fn set_window(&mut self, window: u64) {
        self.draw = None;
        (self.window, self.max) = (window, window);
    }

    #[inline]
    pub(super) const fn window(&self) -> u64 {
        self.window
    }

    /// Starts the first part of the window when the first bytes arrive.
    #[inline]
    pub(super) fn on_received(&mut self, now: Time) {
        if self.since.is_none() {
            self.since = Some(now);
        }
    }

    /// Counts bytes that arrive, readable or not.
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

    /// Returns true if an eighth of the window has arrived since the size was last examined.
    #[inline]
    pub(super) fn has_measured(&self) -> bool {
        self.arrivals.latest.is_some() && self.window < self.max
    }

    /// Returns the bytes consumed before more credit is announced: half of a small window, and less
    /// of a large one, so that most of it can be in flight. A window is several round trips of
    /// data, so a frame is nearly always in flight: a client that only reads sends nothing else
    /// that it would retransmit from a new address after a NAT rebinding.
    #[inline]
    pub(super) const fn step(&self) -> u64 {
        match self.window {
            HUGE.. => self.window / 16,
            LARGE.. => self.window / 8,
            _ => self.window.div_ceil(2),
        }
    }

    /// Returns the bytes consumed before growth is considered:measured over
    /// fewer bytes, an application that reads in batches would look fast.
    const fn part(&self) -> u64 {
        match self.window {
            HUGE.. => self.window / 4,
            _ => self.window.div_ceil(2),
        }
    }

    /// Considers growth after at least a [step](Self::step) was consumed, when more credit is about
    /// to be announced. `keeps_up` means that the application leaves few readable bytes.
    pub(super) fn on_consumed(&mut self, now: Time, rtt: Duration, consumed: u64, keeps_up: bool) {
        if let Some(draw) = &mut self.draw {
            // A window that was idle may have lost its growth. Credit that was announced stays.
            self.window -= draw.on_used(now);
        }
        self.consumed += consumed;
        let latest = self.arrivals.latest.take();
        let has_arrived = latest.is_some_and(|eighth| eighth * 2 < rtt);
        let is_part = self.consumed >= self.part();
        if keeps_up && has_arrived || is_part && self.is_consumed_fast(now, rtt) {
            self.double(now);
        } else if !is_part {
            return;
        }
        self.since = Some(now);
        self.consumed = 0;
    }

    /// Returns true at a quarter of the window per round trip, computed without a division.
    fn is_consumed_fast(&self, now: Time, rtt: Duration) -> bool {
        self.since.is_some_and(|since| {
            let elapsed = u128::from(self.window) * now.saturating_since(since).as_nanos();
            elapsed < u128::from(self.consumed) * 4 * rtt.as_nanos()
        })
    }

    /// Considers growth while nothing can be consumed because a packet was lost, and more and more
    /// bytes arrive behind it. An eighth per round trip is enough to grow: a lost retransmission
    /// takes another round trip, and another passes until new credit reaches the sender.
    pub(super) fn on_stalled(&mut self, now: Time, rtt: Duration) {
        let latest = self.arrivals.latest.take();
        if latest.is_some_and(|eighth| eighth < rtt) {
            self.double(now);
        }
    }

    /// Takes back a part of the latest growth, which no budget has granted.
    pub(super) fn shrink_to(&mut self, window: u64) {
        self.window = self.window.min(window);
    }

    /// Grows to `window` bytes, or as far as the maximum and the budget allow.
    pub(super) fn grow_to(&mut self, now: Time, window: u64) {
        let growth = window.min(self.max).saturating_sub(self.window);
        if growth > 0 {
            self.grow(now, growth);
        }
    }

    fn double(&mut self, now: Time) {
        self.grow(now, self.window.min(self.max - self.window));
    }

    fn grow(&mut self, now: Time, growth: u64) {
        let granted = self.draw.as_mut().map(|draw| draw.take(now, growth));
        self.window += granted.unwrap_or(growth);
    }
}

/// Parts of the window, each of which is measured as it arrives.
const EIGHTHS: u64 = 8;

/// From this size on, a few more MAX_DATA frames have no measurable cost.
const LARGE: u64 = 256 << 10;

/// From this size on a frame grants a megabyte or more. A window that cannot grow any more then
/// appears to its sender a sixteenth smaller than it is.
const HUGE: u64 = 16 << 20;

#[cfg(test)]
mod tests;
