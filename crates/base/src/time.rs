//! Points in time as nanoseconds since an epoch that the driver chooses.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point in time: nanoseconds since an epoch that the driver chose.
///
/// Only a [`Duration`] can be added. All arithmetic saturates, because peers can make us add very
/// long durations (an acknowledgement delay of 2^62 microseconds) and because a clock can jump.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

impl Time {
    /// The epoch, which the driver chooses. No time is earlier.
    pub const ZERO: Self = Self(0);
    /// The latest time: later than any time that a driver supplies.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a time from nanoseconds since the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the earlier of two times that may be missing. Connections ask for the next of their
    /// timers several times per request, and chained iterators take ten times as long.
    pub fn earliest(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Returns the duration from `earlier` to `self`, or zero if `earlier` is later.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns `self - duration`, or the epoch if that would be before it.
    pub fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addition_saturates_at_the_latest_time() {
        assert_eq!(Time::from_nanos(5) + Duration::MAX, Time::MAX);
    }

    #[test]
    fn a_missing_time_is_never_the_earliest() {
        let [soon, late] = [Time::from_nanos(5), Time::from_nanos(9)].map(Some);
        assert_eq!(Time::earliest(None, None), None);
        assert_eq!(Time::earliest(late, None), late);
        assert_eq!(Time::earliest(None, late), late);
        assert_eq!(Time::earliest(late, soon), soon);
    }

    #[test]
    fn difference_of_reversed_times_is_zero() {
        assert_eq!(Time::from_nanos(5) - Time::from_nanos(9), Duration::ZERO);
        assert_eq!(
            Time::from_nanos(5).saturating_sub(Duration::from_secs(1)),
            Time::ZERO
        );
    }
}
