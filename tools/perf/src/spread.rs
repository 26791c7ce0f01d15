//! The distribution of throughput over the intervals of a measurement.

use std::time::Duration;

use courser_measure::Percentiles;
use courser_units::{bits_per_second, to_f64};
use serde::Serialize;

use crate::meter::{Interval, Load};

/// The distribution of throughput over equal intervals.
#[derive(Serialize, Clone, Copy, PartialEq, Debug, Default)]
pub struct Spread {
    /// The number of intervals that count. Intervals that are shorter than the others, such as the last one, do
    /// not count, nor do those before the first datagram or after the last one.
    pub intervals: usize,
    /// The length of an interval in seconds.
    pub interval_seconds: f64,
    /// Bits per second from the client to the server; `None` if there are none, or fewer intervals than
    /// [`MIN_INTERVALS`](Self::MIN_INTERVALS).
    pub upload_bits_per_second: Option<Percentiles>,
    /// Bits per second from the server to the client.
    pub download_bits_per_second: Option<Percentiles>,
    /// Requests, handshakes, datagrams or closes per second.
    pub per_second: Option<Percentiles>,
}

impl Spread {
    /// The number of intervals that percentiles need.
    pub const MIN_INTERVALS: usize = 5;

    /// Computes the distribution over intervals of the length `every`. Intervals that are not entirely within
    /// the load do not count.
    pub(crate) fn of(intervals: &[Interval], every: Duration, load: &Load) -> Self {
        let every = every.as_secs_f64();
        let length = |interval: &Interval| load.within(interval);
        let whole = intervals
            .iter()
            .filter(|interval| length(interval) >= every * WHOLE);
        let whole: Vec<&Interval> = whole.collect();
        let percentiles = |rate: &dyn Fn(&Interval) -> f64| {
            let rates: Vec<f64> = whole.iter().map(|interval| rate(interval)).collect();
            percentiles(&rates)
        };
        let bits = |bytes, interval: &Interval| bits_per_second(bytes, length(interval));
        Self {
            intervals: whole.len(),
            interval_seconds: every,
            upload_bits_per_second: percentiles(&|it| bits(it.sent_bytes, it)),
            download_bits_per_second: percentiles(&|it| bits(it.received_bytes, it)),
            per_second: percentiles(&|it| to_f64(it.count) / length(it)),
        }
    }
}

/// Computes the percentiles of rates. Returns `None` if there are too few, or if all are 0.
fn percentiles(rates: &[f64]) -> Option<Percentiles> {
    let is_enough = rates.len() >= Spread::MIN_INTERVALS && rates.iter().any(|rate| *rate > 0.0);
    Percentiles::of(rates.iter().copied()).filter(|_| is_enough)
}

/// The share of the full length from which on an interval counts, because timers may be late.
const WHOLE: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(start: f64, end: f64, sent_bytes: u64) -> Interval {
        Interval {
            start,
            end,
            sent_bytes,
            received_bytes: 0,
            bits_per_second: 0.0,
            count: 2,
            packets_lost: None,
            rtt_us: None,
            congestion_window: None,
        }
    }

    /// Intervals of a second with 1, 2, 3 and more bytes.
    fn intervals(count: u32) -> Vec<Interval> {
        let seconds = (0..count).map(f64::from);
        seconds
            .zip(1..)
            .map(|(start, bytes)| interval(start, start + 1.0, bytes))
            .collect()
    }

    #[test]
    fn percentiles_are_rates_of_intervals_by_nearest_rank() {
        let spread = Spread::of(&intervals(10), Duration::from_secs(1), &Load::ALWAYS);
        let expected = Percentiles {
            p10: 8.0,
            p50: 40.0,
            p90: 72.0,
        };
        assert_eq!(spread.intervals, 10);
        assert_eq!(spread.upload_bits_per_second, Some(expected));
        assert_eq!(spread.download_bits_per_second, None);
        let constant = Percentiles {
            p10: 2.0,
            p50: 2.0,
            p90: 2.0,
        };
        assert_eq!(spread.per_second, Some(constant));
    }

    #[test]
    fn fewer_than_five_intervals_have_no_percentiles() {
        let every = Duration::from_secs(1);
        let spread = |count| Spread::of(&intervals(count), every, &Load::ALWAYS);
        assert_eq!(spread(4).intervals, 4);
        assert_eq!(spread(4).upload_bits_per_second, None);
        let five = spread(5).upload_bits_per_second.expect("enough");
        assert_eq!([five.p10, five.p50, five.p90], [8.0, 24.0, 40.0]);
    }

    #[test]
    fn idle_intervals_before_and_after_the_load_do_not_count() {
        let mut all = intervals(7);
        (all[0].sent_bytes, all[6].sent_bytes) = (0, 0);
        let load = Load {
            start: 0.9,
            end: 6.05,
        };
        let spread = Spread::of(&all, Duration::from_secs(1), &load);
        assert_eq!(spread.intervals, 5);
        let upload = spread.upload_bits_per_second.expect("enough");
        assert_eq!([upload.p10, upload.p90], [16.0, 48.0]);
    }

    #[test]
    fn short_intervals_do_not_count_and_long_ones_do_by_their_own_length() {
        let mut all = intervals(5);
        all.push(interval(5.0, 5.1, 1));
        all.push(interval(5.1, 7.1, 100));
        let spread = Spread::of(&all, Duration::from_secs(1), &Load::ALWAYS);
        assert_eq!(spread.intervals, 6);
        let upload = spread.upload_bits_per_second.expect("enough");
        assert!((upload.p90 - 400.0).abs() < 1e-6, "{upload:?}");
        assert!((upload.p10 - 8.0).abs() < 1e-6, "{upload:?}");
    }
}
