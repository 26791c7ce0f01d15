//! The time of the next attempt after a failed one.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use super::failure::Kind;

/// The failed attempts that decide when the next one is made.
///
/// Authorities limit failed validations, Let's Encrypt to five an hour for each name. A server that uses them up
/// in its first minute is locked out just when its operator corrects the fault. So the second pause is long
/// already, and an hour has at most four refusals, across restarts.
#[derive(Default, Debug)]
pub(super) struct Pace {
    /// The times of refusals within the last hour, oldest first.
    refusals: VecDeque<SystemTime>,
    /// Number of failures since the last success, of each kind.
    refused: u32,
    unreachable: u32,
}

impl Pace {
    /// Continues with the refusals of an earlier process.
    pub(super) fn with_refusals(times: impl IntoIterator<Item = SystemTime>) -> Self {
        Self {
            refusals: times.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Returns the times of the refusals that still count.
    pub(super) fn refusals(&self) -> impl Iterator<Item = SystemTime> {
        self.refusals.iter().copied()
    }

    /// Returns the time of the first attempt of a process: at once, unless the last hour has too many refusals.
    pub(super) fn first(&mut self, now: SystemTime) -> SystemTime {
        self.permitted(now)
    }

    pub(super) fn on_success(&mut self) {
        *self = Self::default();
    }

    /// Counts a failure and returns the time of the next attempt. `retry_after` is the time before which the
    /// ACME server wants none (RFC 8555 §6.6), `fraction` a random number below 1.
    pub(super) fn on_failure(
        &mut self,
        kind: Kind,
        retry_after: Option<SystemTime>,
        now: SystemTime,
        fraction: f64,
    ) -> SystemTime {
        let pause = match kind {
            // The next attempt creates another account.
            Kind::UnknownAccount => Duration::from_secs(1),
            Kind::Uncounted => {
                let doublings = self.unreachable.min(16);
                self.unreachable += 1;
                (FIRST_UNREACHABLE * 2_u32.pow(doublings)).min(MAX_UNREACHABLE)
            }
            Kind::Refused => {
                let index = usize::try_from(self.refused).unwrap_or(usize::MAX);
                self.refused += 1;
                self.refusals.push_back(now);
                REFUSED.get(index).copied().unwrap_or(MAX_REFUSED)
            }
        };
        // Many servers that lost their ACME server at the same time do not return at the same time.
        let next = now + pause + pause.mul_f64(fraction * JITTER);
        // A date far away is a mistake of the server, or of a clock.
        let latest = now + MAX_RETRY_AFTER;
        let asked = retry_after.map_or(now, |it| it.min(latest));
        self.permitted(next.max(asked))
    }

    /// Returns the time from `next` on at which an hour has fewer refusals than are permitted.
    fn permitted(&mut self, next: SystemTime) -> SystemTime {
        // Refusals in the future come from a clock that was wrong.
        self.refusals
            .retain(|&at| next.duration_since(at).is_ok_and(|age| age < HOUR));
        let surplus = self.refusals.len().checked_sub(MAX_REFUSALS_PER_HOUR);
        match surplus.and_then(|index| self.refusals.get(index)) {
            Some(&oldest) => oldest + HOUR,
            None => next,
        }
    }
}

const HOUR: Duration = Duration::from_secs(3600);

/// The largest number of refused orders in an hour, and the pauses after them (limit K402).
const MAX_REFUSALS_PER_HOUR: usize = 4;
const REFUSED: [Duration; 5] = [
    Duration::from_secs(60),
    Duration::from_secs(15 * 60),
    Duration::from_secs(30 * 60),
    HOUR,
    Duration::from_secs(3 * 3600),
];
const MAX_REFUSED: Duration = Duration::from_secs(6 * 3600);
/// The first and the longest pause after an attempt that did not reach the ACME server (limit K403).
const FIRST_UNREACHABLE: Duration = Duration::from_secs(10);
const MAX_UNREACHABLE: Duration = Duration::from_secs(600);
/// The longest time for which a Retry-After field is obeyed (limit K404).
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);
/// The largest random part that is added to a pause.
const JITTER: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
    }

    /// Makes attempts that are all refused for a day, and returns their times in seconds.
    fn refused_for_a_day(mut pace: Pace) -> Vec<u64> {
        let mut now = pace.first(start());
        let mut times = Vec::new();
        while now < start() + 24 * HOUR {
            let since = now.duration_since(start()).expect("not before the start");
            times.push(since.as_secs());
            now = pace.on_failure(Kind::Refused, None, now, 0.0);
        }
        times
    }

    #[test]
    fn no_hour_has_five_refusals_and_the_second_pause_is_long() {
        let times = refused_for_a_day(Pace::default());
        assert_eq!(times[..5], [0, 60, 960, 2760, 6360]);
        for window in times.windows(5) {
            assert!(window[4] - window[0] >= 3600, "{times:?}");
        }
        let last = times.windows(2).last().expect("several attempts");
        assert_eq!(last[1] - last[0], 6 * 3600);
    }

    #[test]
    fn restarts_do_not_use_up_the_limit_of_the_authority() {
        let mut kept = Vec::new();
        let mut attempts = Vec::new();
        // A supervisor restarts the process every ten seconds.
        for second in (0..3600).step_by(10) {
            let now = start() + Duration::from_secs(second);
            let mut pace = Pace::with_refusals(kept.clone());
            if pace.first(now) <= now {
                attempts.push(second);
                pace.on_failure(Kind::Refused, None, now, 0.0);
            }
            kept = pace.refusals().collect();
        }
        assert_eq!(attempts, [0, 10, 20, 30]);
        let mut pace = Pace::with_refusals(kept);
        let later = start() + HOUR;
        assert_eq!(pace.first(later), later);
    }

    #[test]
    fn unreachable_server_is_tried_soon_and_counts_as_no_refusal() {
        let mut pace = Pace::default();
        let now = start();
        let pauses: Vec<u64> = (0..9)
            .map(|_| {
                let next = pace.on_failure(Kind::Uncounted, None, now, 0.0);
                next.duration_since(now).expect("later").as_secs()
            })
            .collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
        assert_eq!(pace.refusals().count(), 0);
        pace.on_success();
        let next = pace.on_failure(Kind::Uncounted, None, now, 0.999);
        assert_eq!(next.duration_since(now).expect("later").as_secs(), 10);
    }

    #[test]
    fn retry_after_is_obeyed_within_a_day() {
        let now = start();
        for (asked, expected) in [(40, 60), (400, 400), (1 << 30, 24 * 3600)] {
            let mut pace = Pace::default();
            let asked = now + Duration::from_secs(asked);
            let next = pace.on_failure(Kind::Refused, Some(asked), now, 0.0);
            assert_eq!(next, now + Duration::from_secs(expected));
        }
    }

    #[test]
    fn refusals_of_a_clock_that_was_ahead_do_not_lock_out() {
        let ahead = start() + 1000 * HOUR;
        let mut pace = Pace::with_refusals([ahead; 4]);
        assert_eq!(pace.first(start()), start());
    }
}
