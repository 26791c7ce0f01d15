//! The jitter of received datagrams, by their times of arrival alone.

use std::time::Duration;

use courser_base::Time;

/// Measures how much the time between two arrivals deviates from its mean.
///
/// The mean stands for the difference of the times of sending in RFC 3550 §6.4.1, which a receiver of
/// DATAGRAM frames does not know.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArrivalJitter {
    last: Option<Time>,
    /// The running mean of the time between two arrivals.
    mean: Option<Duration>,
    deviation: Duration,
}

impl ArrivalJitter {
    /// Returns the smoothed mean deviation.
    pub(super) fn value(&self) -> Duration {
        self.deviation
    }

    /// Records the arrival of a datagram.
    #[inline]
    pub(super) fn on_arrival(&mut self, now: Time) {
        let Some(last) = self.last.replace(now) else {
            return;
        };
        let gap = now - last;
        if gap > PAUSE {
            return;
        }
        let Some(mean) = self.mean else {
            self.mean = Some(gap);
            return;
        };
        self.deviation = approach(self.deviation, gap.abs_diff(mean));
        self.mean = Some(approach(mean, gap));
    }
}

/// Moves a mean towards a sample, by a sixteenth of their difference (RFC 3550 §6.4.1).
fn approach(mean: Duration, sample: Duration) -> Duration {
    match sample >= mean {
        true => mean + (sample - mean) / WEIGHT,
        false => mean - (mean - sample) / WEIGHT,
    }
}

const WEIGHT: u32 = 16;

/// The longest time between two datagrams of one flow. Speakers pause, and that is no jitter.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn after(millis: impl IntoIterator<Item = u64>) -> ArrivalJitter {
        let mut jitter = ArrivalJitter::default();
        let mut now = Time::ZERO;
        jitter.on_arrival(now);
        for gap in millis {
            now += Duration::from_millis(gap);
            jitter.on_arrival(now);
        }
        jitter
    }

    #[test]
    fn constant_interval_has_no_jitter() {
        assert_eq!(after([20; 50]).value(), Duration::ZERO);
        assert_eq!(after([0; 50]).value(), Duration::ZERO);
    }

    /// A frame that is 5 ms late shortens the time to the next one: the deviation is 5 ms for each gap.
    #[test]
    fn alternating_delay_is_found() {
        let gaps = (0..400).map(|index| if index % 2 == 0 { 25 } else { 15 });
        let found = after(gaps).value();
        let error = found.abs_diff(Duration::from_millis(5));
        assert!(error < Duration::from_micros(300), "{found:?}");
    }

    #[test]
    fn pause_is_no_jitter() {
        let gaps = [vec![20; 50], vec![5_000], vec![20; 50]].concat();
        assert_eq!(after(gaps).value(), Duration::ZERO);
    }

    #[test]
    fn lost_datagram_counts_as_a_gap() {
        let gaps = [vec![20; 50], vec![40]].concat();
        assert_eq!(after(gaps).value(), Duration::from_millis(20) / 16);
    }
}
