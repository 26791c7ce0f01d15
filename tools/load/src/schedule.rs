//! Schedules requests, and determines the end of the run.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use courser_units::to_f64;

use crate::plan::{Amount, Plan};

/// A request that the schedule has released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    pub(crate) number: u64,
    /// The time at which the request is due; `None` without a rate.
    pub(crate) due: Option<Instant>,
    /// The number of times that it was sent but certainly not processed.
    pub(crate) tries: u8,
}

/// The schedule of all requests, which the threads share.
#[derive(Debug)]
pub(crate) struct Schedule {
    began: Instant,
    measured_from: Instant,
    ends: Option<Instant>,
    /// True if the run waits for requests in flight at its end.
    waits: bool,
    limit: u64,
    /// Nanoseconds between requests; `None` without a rate.
    interval: Option<f64>,
    next: AtomicU64,
}

impl Schedule {
    pub(crate) fn new(plan: &Plan, began: Instant) -> Self {
        let (warm_up, ends, waits, limit) = match plan.amount {
            Amount::Requests(count) => (Duration::ZERO, None, true, count),
            Amount::Time {
                warm_up,
                measured,
                waits,
            } => (warm_up, Some(began + warm_up + measured), waits, u64::MAX),
        };
        Self {
            began,
            measured_from: began + warm_up,
            ends,
            waits,
            limit,
            interval: plan.rate.map(|rate| 1e9 / rate),
            next: AtomicU64::new(0),
        }
    }

    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    pub(crate) fn measured_from(&self) -> Instant {
        self.measured_from
    }

    /// Returns the time from which no more requests are sent.
    pub(crate) fn ends(&self) -> Option<Instant> {
        self.ends
    }

    /// Returns the time at which requests in flight are abandoned.
    pub(crate) fn cuts_at(&self) -> Option<Instant> {
        self.ends.filter(|_| !self.waits)
    }

    /// Returns the largest time before the end in which no request is due.
    pub(crate) fn slack(&self) -> Duration {
        let interval = Duration::from_secs_f64(self.interval.unwrap_or(0.0) / 1e9);
        interval * 2 + Duration::from_millis(10)
    }

    /// Returns the next request, if one is left.
    pub(crate) fn next_ticket(&self) -> Option<Ticket> {
        // Read before incrementing, so that the counter stops growing at the limit.
        if self.next.load(Relaxed) >= self.limit {
            return None;
        }
        let number = self.next.fetch_add(1, Relaxed);
        let due = self.interval.map(|interval| self.due(number, interval));
        let is_late = due.is_some_and(|due| self.is_over(due));
        (number < self.limit && !is_late).then_some(Ticket {
            number,
            due,
            tries: 0,
        })
    }

    /// Returns true if no more requests are sent at this time.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.ends.is_some_and(|ends| now >= ends)
    }

    /// Returns true if no request is left.
    pub(crate) fn is_exhausted(&self, now: Instant) -> bool {
        self.is_over(now) || self.next.load(Relaxed) >= self.limit
    }

    /// Returns the completed share of the run, from 0 to 1.
    pub(crate) fn share(&self, now: Instant, done: u64) -> f64 {
        match self.ends {
            Some(ends) => {
                let all = ends - self.began;
                now.saturating_duration_since(self.began).as_secs_f64() / all.as_secs_f64()
            }
            None => to_f64(done) / to_f64(self.limit.max(1)),
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "2^53 ns are a hundred days"
    )]
    fn due(&self, number: u64, interval: f64) -> Instant {
        self.began + Duration::from_nanos((number as f64 * interval) as u64)
    }
}
