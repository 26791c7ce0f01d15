//! The pause before another attempt (gRPC Connection Backoff Protocol).

use std::time::Duration;

/// Returns the pause after so many failures in a row. `random` is a number from 0 to 1.
pub(super) fn pause(failures: u32, random: f64) -> Duration {
    let exponent = failures.saturating_sub(1).min(MAX_EXPONENT);
    let pause = FIRST
        .mul_f64(FACTOR.powi(exponent.cast_signed()))
        .min(LONGEST);
    pause.mul_f64(1.0 - JITTER + 2.0 * JITTER * random.clamp(0.0, 1.0))
}

const FIRST: Duration = Duration::from_secs(1);
const FACTOR: f64 = 1.6;
/// The longest pause (limit K541).
const LONGEST: Duration = Duration::from_secs(120);
/// The random part, so that the clients of a server that returns do not all come at once.
const JITTER: f64 = 0.2;
/// 1.6 to this power exceeds the longest pause.
const MAX_EXPONENT: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_two_minutes_with_a_fifth_of_jitter() {
        assert_eq!(pause(1, 0.5), Duration::from_secs(1));
        assert_eq!(pause(2, 0.5), Duration::from_millis(1600));
        assert_eq!(pause(3, 0.5), Duration::from_millis(2560));
        assert_eq!(pause(1, 0.0), Duration::from_millis(800));
        assert_eq!(pause(1, 1.0), Duration::from_millis(1200));
        assert_eq!(pause(u32::MAX, 0.5), LONGEST);
    }
}
