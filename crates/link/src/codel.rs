//! CoDel: drops or marks packets when the queue has not been short for an interval.
//!
//! Implements RFC 8289 in integers: the square root of the control law is exact to a nanosecond and the same
//! on every machine.

use std::time::Duration;

use courser_base::Time;

/// The state of CoDel, which decides about each packet that leaves the queue (RFC 8289 §5).
#[derive(Clone, Debug)]
pub(super) struct CoDel {
    target: Duration,
    interval: Duration,
    /// The time at which the delay will have been above target for an interval. `None` while it is
    /// below.
    first_above: Option<Time>,
    state: CoDelState,
    /// The last dropping state: the time of its next drop and the number of its drops.
    last: Episode,
}

#[derive(Clone, Copy, Debug)]
enum CoDelState {
    Observing,
    Dropping(Episode),
}

/// A dropping state: its next drop and the number of its drops.
#[derive(Clone, Copy, Debug, Default)]
struct Episode {
    next: Time,
    count: u64,
    /// The value of `count` when the state was entered.
    initial: u64,
}

/// The decision about the packet at the head of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CoDelDecision {
    Pass,
    /// Mark the packet if its sender supports ECN, otherwise drop it.
    Signal,
}

impl CoDel {
    pub(super) fn new(target: Duration, interval: Duration) -> Self {
        Self {
            target,
            interval,
            first_above: None,
            state: CoDelState::Observing,
            last: Episode::default(),
        }
    }

    /// Decides about the packet at the head, which has waited for `sojourn`.
    ///
    /// `is_last` is true if at most one packet would remain. A drop would then leave the link idle.
    pub(super) fn decide(&mut self, now: Time, sojourn: Duration, is_last: bool) -> CoDelDecision {
        let may_signal = self.is_above_for_long(now, sojourn, is_last);
        match &mut self.state {
            CoDelState::Dropping(_) if !may_signal => {
                self.leave();
                CoDelDecision::Pass
            }
            CoDelState::Dropping(episode) if now >= episode.next => {
                episode.count += 1;
                episode.next += gap(self.interval, episode.count);
                CoDelDecision::Signal
            }
            CoDelState::Observing if may_signal => {
                self.enter(now);
                CoDelDecision::Signal
            }
            CoDelState::Dropping(_) | CoDelState::Observing => CoDelDecision::Pass,
        }
    }

    /// Leaves the dropping state because the queue is empty.
    pub(super) fn on_empty(&mut self) {
        self.first_above = None;
        self.leave();
    }

    fn is_above_for_long(&mut self, now: Time, sojourn: Duration, is_last: bool) -> bool {
        if sojourn < self.target || is_last {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.interval);
                false
            }
            Some(time) => now >= time,
        }
    }

    /// Enters the dropping state, at the previous rate if that was recent (RFC 8289 §5.5).
    fn enter(&mut self, now: Time) {
        let grown = self.last.count - self.last.initial;
        let is_recent = now - self.last.next < self.interval.saturating_mul(16);
        let count = if grown > 1 && is_recent { grown } else { 1 };
        self.state = CoDelState::Dropping(Episode {
            next: now + gap(self.interval, count),
            count,
            initial: count,
        });
    }

    fn leave(&mut self) {
        if let CoDelState::Dropping(episode) = self.state {
            self.last = episode;
            self.state = CoDelState::Observing;
        }
    }
}

/// Returns the time to the next drop: `interval / sqrt(count)`, rounded down (RFC 8289 §3.3).
fn gap(interval: Duration, count: u64) -> Duration {
    let nanos = interval.as_nanos();
    let square = nanos.saturating_mul(nanos) / u128::from(count.max(1));
    Duration::from_nanos(u64::try_from(square.isqrt()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
