//! Rates in bytes per second.

use std::time::Duration;

/// A rate in bytes per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Rate(u64);

impl Rate {
    /// Creates a rate from a number of bytes per second.
    pub const fn from_bytes_per_second(rate: u64) -> Self {
        Self(rate)
    }

    /// Returns the rate that transfers `bytes` in `time`, or the highest rate if `time` is zero.
    pub fn from_bytes_in(bytes: u64, time: Duration) -> Self {
        let nanos = time.as_nanos();
        if nanos == 0 {
            return Self(u64::MAX);
        }
        let rate = u128::from(bytes) * 1_000_000_000 / nanos;
        Self(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// Returns the rate in bytes per second.
    pub const fn as_bytes_per_second(self) -> u64 {
        self.0
    }

    /// Returns the time that `bytes` take at this rate, or [`Duration::MAX`] at rate zero.
    pub fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the number of bytes that this rate transfers in `time`.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let bytes = u128::from(self.0).saturating_mul(time.as_nanos()) / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns this rate multiplied by `numerator / denominator`. `denominator` must not be zero.
    pub fn scaled(self, numerator: u32, denominator: u32) -> Self {
        let rate = u128::from(self.0) * u128::from(numerator) / u128::from(denominator);
        Self(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_time_is_size_over_rate() {
        let rate = Rate::from_bytes_per_second(1_000_000);
        assert_eq!(rate.time_for(1_000), Duration::from_millis(1));
        assert_eq!(rate.bytes_in(Duration::from_millis(1)), 1_000);
        assert_eq!(Rate::from_bytes_in(1_000, Duration::from_millis(1)), rate);
    }

    #[test]
    fn extremes_saturate() {
        assert_eq!(Rate::from_bytes_per_second(0).time_for(1), Duration::MAX);
        assert_eq!(
            Rate::from_bytes_in(1, Duration::ZERO).as_bytes_per_second(),
            u64::MAX
        );
        assert_eq!(
            Rate::from_bytes_per_second(u64::MAX).bytes_in(Duration::MAX),
            u64::MAX
        );
    }
}
