//! Points in time as nanoseconds since the driver started.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point in time: nanoseconds since an epoch that the driver chose.
///
/// Only a [`Duration`] can be added. All arithmetic saturates, because peers can make us add
/// very long durations (an acknowledgement delay of 2^62 microseconds) and a clock can jump.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

impl Time {
    /// The driver's epoch.
    pub const ZERO: Self = Self(0);
    /// Later than any time a driver hands in.
    pub const MAX: Self = Self(u64::MAX);

    /// Makes a time from nanoseconds since the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`; zero when `earlier` is later.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// `self - duration`, not before the epoch.
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
    fn adding_saturates_at_the_end_of_time() {
        assert_eq!(Time::from_nanos(5) + Duration::MAX, Time::MAX);
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
