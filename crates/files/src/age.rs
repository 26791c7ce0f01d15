//! The maximum age of cached information about files.

use std::time::{Duration, Instant};

/// The maximum age of information about a file that is not watched.
///
/// A check costs 3 us. A file that is requested a hundred thousand times a second pays for it once
/// in a thousand requests.
pub(crate) const UNWATCHED: Duration = Duration::from_millis(10);

/// The maximum age of information about a file whose folders are watched. Changes are noticed
/// within [`NOTICED_AFTER`]. This limit covers changes that are not reported, such as writes
/// through a mapping.
pub(crate) const WATCHED: Duration = Duration::from_secs(5);

/// The interval at which a busy server reads reports of changes.
#[cfg(target_os = "linux")]
pub(crate) const NOTICED_AFTER: Duration = Duration::from_millis(1);

/// A point in time, in microseconds since an arbitrary origin. Zero stands for never. Fits into an
/// atomic number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) const fn of(micros: u64) -> Self {
        Self(micros)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// Returns true if `earlier` is at most `age` ago.
    pub(crate) const fn is_within(self, earlier: Self, age: Duration) -> bool {
        earlier.0 > 0 && self.0.saturating_sub(earlier.0) <= age.as_micros() as u64
    }
}

/// A clock that measures moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Moment {
        // One more, because zero stands for never.
        Moment(self.0.elapsed().as_micros() as u64 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_is_not_within_any_age() {
        let now = Moment::of(500);
        assert!(!now.is_within(Moment::of(0), Duration::from_secs(1)));
        assert!(now.is_within(Moment::of(1), Duration::from_micros(499)));
        assert!(!now.is_within(Moment::of(1), Duration::from_micros(498)));
    }
}
