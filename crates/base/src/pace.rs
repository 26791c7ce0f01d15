//! A rate limit for frames that a program can cause by calling a public function.

use std::time::Duration;

use crate::Time;

/// A bucket of permits: a number of them at once, and one more after each interval.
///
/// A peer closes a connection on which too many frames make no progress. A program must not be able to cause
/// that by calling a public function often, so each such function limits the rate of its frames.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    burst: u32,
    interval: Duration,
    left: u32,
    refilled: Time,
}

impl Pace {
    /// Creates a full bucket for `burst` permits, which gains one after each `interval`.
    pub const fn new(burst: u32, interval: Duration) -> Self {
        Self {
            burst,
            interval,
            left: burst,
            refilled: Time::ZERO,
        }
    }

    /// Takes a permit. Returns false if none is left.
    pub fn take(&mut self, now: Time) -> bool {
        self.refill(now);
        let is_allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_allowed
    }

    /// Returns the time at which a permit is available. It is not after `now` if there is one already.
    pub fn next(&mut self, now: Time) -> Time {
        self.refill(now);
        match self.left {
            0 => self.refilled + self.interval,
            _ => now,
        }
    }

    fn refill(&mut self, now: Time) {
        if self.left >= self.burst {
            self.refilled = now;
            return;
        }
        let earned = (now - self.refilled).as_nanos() / self.interval.as_nanos().max(1);
        let missing = self.burst - self.left;
        match u32::try_from(earned) {
            Ok(earned) if earned < missing => {
                self.left += earned;
                self.refilled += self.interval * earned;
            }
            _ => (self.left, self.refilled) = (self.burst, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(20);

    #[test]
    fn permits_are_a_burst_and_then_one_per_interval() {
        let mut pace = Pace::new(3, INTERVAL);
        let start = Time::ZERO + Duration::from_secs(5);
        assert_eq!((0..10).filter(|_| pace.take(start)).count(), 3);
        assert_eq!(pace.next(start), start + INTERVAL);
        let steps = (1..=100_u32).map(|step| start + INTERVAL * step / 4);
        assert_eq!(steps.filter(|&now| pace.take(now)).count(), 25);
    }

    #[test]
    fn pause_refills_the_bucket_up_to_its_size() {
        let mut pace = Pace::new(3, INTERVAL);
        while pace.take(Time::ZERO) {}
        let later = Time::ZERO + Duration::from_secs(3600);
        assert_eq!(pace.next(later), later);
        assert_eq!((0..10).filter(|_| pace.take(later)).count(), 3);
        assert!(pace.take(Time::MAX));
    }

    #[test]
    fn next_permit_is_available_at_its_time_and_not_before() {
        let mut pace = Pace::new(1, INTERVAL);
        assert!(pace.take(Time::ZERO));
        let next = pace.next(Time::ZERO + INTERVAL / 2);
        assert_eq!(next, Time::ZERO + INTERVAL);
        assert!(!pace.take(Time::ZERO + (INTERVAL - Duration::from_nanos(1))));
        assert!(pace.take(next));
    }
}
