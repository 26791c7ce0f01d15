//! Ticks at a constant interval.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use super::sleep::{Sleep, sleep_until};

/// Returns ticks every `period`. The first one is due at once.
///
/// ```
/// # extern crate courser_quic as courser;
/// use std::time::Duration;
/// use courser::runtime;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut ticks = runtime::interval(Duration::from_millis(20));
/// let first = ticks.tick().await;
/// assert_eq!(ticks.tick().await - first, Duration::from_millis(20));
/// # }
/// ```
///
/// # Panics
/// Panics if `period` is zero, and under the conditions of [`sleep`](super::sleep).
pub fn interval(period: Duration) -> Interval {
    interval_at(super::now(), period)
}

/// Returns ticks every `period`, of which the first is due at `start`, an instant of [`now`](super::now).
///
/// # Panics
/// Panics under the conditions of [`interval`].
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(!period.is_zero(), "the period of an interval is zero");
    Interval {
        sleep: sleep_until(start),
        period,
        missed: MissedTicks::default(),
    }
}

/// Ticks at a constant interval. See [`interval`].
///
/// The times of ticks do not drift: they are `start`, `start + period` and so on, with
/// [`MissedTicks::Delay`] from each delay on anew.
#[derive(Debug)]
pub struct Interval {
    sleep: Sleep,
    period: Duration,
    missed: MissedTicks,
}

/// The ticks that follow one that was taken a whole period or more too late.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MissedTicks {
    /// The missed ones, at once, until the interval has caught up.
    #[default]
    Burst,
    /// The next one, a period after the late one.
    Delay,
    /// The next one that was not missed.
    Skip,
}

impl Interval {
    /// Sets which ticks follow a late one. The default is [`MissedTicks::Burst`].
    #[must_use]
    pub fn missed_ticks(mut self, missed: MissedTicks) -> Self {
        self.missed = missed;
        self
    }

    /// Waits for the next tick, and returns the time at which it was due.
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has taken no tick.
    pub async fn tick(&mut self) -> Instant {
        std::future::poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls [`tick`](Self::tick).
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(Pin::new(&mut self.sleep).poll(cx));
        let due = self.sleep.deadline();
        let next = self.next_after(due, super::now());
        self.sleep.reset(next);
        Poll::Ready(due)
    }

    /// Sets the next tick to a period from now.
    pub fn reset(&mut self) {
        self.sleep.reset(super::now() + self.period);
    }

    /// Returns the time between two ticks.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Returns the time of the tick after the one that was due at `due` and taken at `now`.
    fn next_after(&self, due: Instant, now: Instant) -> Instant {
        let next = due + self.period;
        if now < next {
            return next;
        }
        match self.missed {
            MissedTicks::Burst => next,
            MissedTicks::Delay => now + self.period,
            MissedTicks::Skip => {
                let rest = (now - due).as_nanos() % self.period.as_nanos();
                let rest = Duration::from_nanos(u64::try_from(rest).unwrap_or(0));
                now + (self.period - rest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(100);

    #[tokio::test]
    async fn late_ticks_are_followed_as_chosen() {
        let start = super::super::now();
        // The lateness, and the next tick with each choice, in milliseconds after the one that was due.
        for (late, burst, delay, skip) in [
            (0, 100, 100, 100),
            (99, 100, 100, 100),
            (100, 100, 200, 200),
            (250, 100, 350, 300),
        ] {
            let now = start + Duration::from_millis(late);
            for (missed, next) in [
                (MissedTicks::Burst, burst),
                (MissedTicks::Delay, delay),
                (MissedTicks::Skip, skip),
            ] {
                let ticks = interval_at(start, PERIOD).missed_ticks(missed);
                let next = start + Duration::from_millis(next);
                assert_eq!(ticks.next_after(start, now), next, "{missed:?}, {late} ms");
            }
        }
    }

    #[tokio::test]
    #[should_panic(expected = "period of an interval is zero")]
    async fn zero_period_is_refused() {
        let _ = interval(Duration::ZERO);
    }
}
