//! Rates of transfers: `--limit-rate`, `--speed-limit` and `--rate`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::exit::{Failed, TIMED_OUT};

/// Parses a number of bytes per second, with the units of curl: K, M, G, T and P are powers of 1024.
pub(super) fn parse_speed(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("'{text}' is not a rate: use bytes per second, such as 500, 100K or 1.5M");
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let power = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let rate = number * 1024_f64.powi(power);
    if !(0.0..MAX_RATE).contains(&rate) {
        return Err(wrong());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in the range, and fractions of bytes do not count"
    )]
    let rate = rate as u64;
    Ok(rate)
}

/// Parses a number of seconds, which may be 0, or a time with a unit, such as `250ms`. As in curl, parts of a
/// millisecond do not count.
pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().map(Duration::try_from_secs_f64);
    match seconds {
        Some(Ok(time)) => Ok(Duration::new(
            time.as_secs(),
            time.subsec_millis() * 1_000_000,
        )),
        Some(Err(_)) => Err(format!("'{text}' is not a time: use at least 0 seconds")),
        None => courser_units::parse_duration(text),
    }
}

/// Parses a rate of transfers, such as `2/s`, and returns the time between two of them.
pub(super) fn parse_rate(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("'{text}' is not a rate of transfers: use a number and /s, /m, /h or /d");
    let (number, unit) = text.split_once('/').unwrap_or((text, "h"));
    let (count, unit) = match unit.find(|letter: char| !letter.is_ascii_digit()) {
        Some(0) => (1, unit),
        Some(end) => (unit[..end].parse().map_err(|_| wrong())?, &unit[end..]),
        None => return Err(wrong()),
    };
    let seconds: u32 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let number: u32 = number.parse().map_err(|_| wrong())?;
    let time = Duration::from_secs(u64::from(seconds) * count);
    time.checked_div(number).ok_or_else(wrong)
}

/// Delays a transfer so that it keeps within a rate.
#[derive(Debug)]
pub(super) struct Pace {
    rate: u64,
    began: Instant,
    bytes: u64,
}

impl Pace {
    pub(super) fn new(rate: u64, now: Instant) -> Self {
        Self {
            rate,
            began: now,
            bytes: 0,
        }
    }

    /// Returns the time to wait after so many bytes.
    pub(super) fn on_bytes(&mut self, bytes: usize, now: Instant) -> Duration {
        self.bytes += bytes as u64;
        let nanos = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.rate.max(1));
        let due = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        due.saturating_sub(now.saturating_duration_since(self.began))
    }
}

/// The limit of `--speed-limit` and `--speed-time`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SlowLimit {
    pub(super) rate: u64,
    pub(super) time: Duration,
}

impl SlowLimit {
    /// Completes with an error once the transfer was slower than the limit for its whole time.
    pub(super) async fn watch(self, moved: &AtomicU64) -> Failed {
        let mut last = moved.load(Ordering::Relaxed);
        let mut slow_for = Duration::ZERO;
        loop {
            tokio::time::sleep(SAMPLE).await;
            let now = moved.load(Ordering::Relaxed);
            let is_slow = now - last < self.rate;
            last = now;
            slow_for = if is_slow {
                slow_for + SAMPLE
            } else {
                Duration::ZERO
            };
            if slow_for >= self.time {
                let text = format!(
                    "too slow: less than {} bytes per second in the last {} seconds (--speed-limit)",
                    self.rate,
                    self.time.as_secs()
                );
                return Failed::new(TIMED_OUT, text);
            }
        }
    }
}

/// The time between two measurements of the rate.
const SAMPLE: Duration = Duration::from_secs(1);
/// Larger rates are no limit.
const MAX_RATE: f64 = 1e18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_the_units_of_curl() {
        for (text, rate) in [
            ("500", 500),
            ("1k", 1024),
            ("1.5K", 1536),
            ("2M", 2 << 20),
            ("1G", 1 << 30),
            ("0", 0),
        ] {
            assert_eq!(parse_speed(text), Ok(rate), "{text}");
        }
        for wrong in ["", "K", "-1", "1X", "1e30", "nan", "inf"] {
            assert!(parse_speed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_of_transfers_are_read() {
        for (text, millis) in [
            ("2/s", 500),
            ("1/m", 60_000),
            ("10", 360_000),
            ("3/15s", 5_000),
        ] {
            assert_eq!(
                parse_rate(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for wrong in ["", "0/s", "x/s", "1/y", "1/", "-1/s"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pace_waits_until_the_bytes_are_due() {
        let began = Instant::now();
        let mut pace = Pace::new(1000, began);
        assert_eq!(pace.on_bytes(500, began), Duration::from_millis(500));
        let later = began + Duration::from_secs(1);
        assert_eq!(pace.on_bytes(250, later), Duration::ZERO);
        assert_eq!(pace.on_bytes(1250, later), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_transfers_are_reported_after_their_time() {
        let moved = AtomicU64::new(0);
        let limit = SlowLimit {
            rate: 100,
            time: Duration::from_secs(3),
        };
        let began = tokio::time::Instant::now();
        let bytes = async {
            for _ in 0..5 {
                tokio::time::sleep(Duration::from_millis(999)).await;
                moved.fetch_add(100, Ordering::Relaxed);
            }
            std::future::pending().await
        };
        let failed = tokio::select! {
            failed = limit.watch(&moved) => failed,
            () = bytes => unreachable!("it never ends"),
        };
        assert_eq!(failed.code, TIMED_OUT);
        let seconds = began.elapsed().as_secs();
        assert!((7..=9).contains(&seconds), "{seconds}");
    }
}
