//! Latencies of single operations.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Percentiles in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of the operations were at least as fast.
    pub p50_us: f64,
    /// 99 of 100 were.
    pub p99_us: f64,
}

impl Latency {
    /// Nearest-rank percentiles; `None` without operations.
    pub fn of(mut samples: Vec<Duration>) -> Option<Self> {
        samples.sort_unstable();
        Some(Self {
            p50_us: rank(&samples, 50)?,
            p99_us: rank(&samples, 99)?,
        })
    }
}

fn rank(sorted: &[Duration], percent: usize) -> Option<f64> {
    let index = (sorted.len() * percent).div_ceil(100).checked_sub(1)?;
    Some(sorted.get(index)?.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let samples = (1..=100).rev().map(Duration::from_micros).collect();
        let latency = Latency::of(samples).unwrap();
        assert!((latency.p50_us - 50.0).abs() < 1e-6, "{latency:?}");
        assert!((latency.p99_us - 99.0).abs() < 1e-6, "{latency:?}");
    }

    #[test]
    fn one_sample_is_every_percentile() {
        let latency = Latency::of(vec![Duration::from_micros(7)]).unwrap();
        assert!((latency.p99_us - 7.0).abs() < 1e-6, "{latency:?}");
        assert_eq!(Latency::of(Vec::new()), None);
    }
}
