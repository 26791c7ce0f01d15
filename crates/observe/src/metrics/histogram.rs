//! Histograms with fixed bounds.

use courser_base::Mutex;

use super::family::Distribution;

/// A histogram behind a lock, because there is only one observation for each connection.
#[derive(Debug)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    state: Mutex<HistogramState>,
}

#[derive(Debug, Default)]
struct HistogramState {
    sum: f64,
    /// Number of values in each bucket. The last bucket is above all bounds.
    counts: Vec<u64>,
}

impl Histogram {
    /// Creates a histogram with these upper bounds, in ascending order.
    pub(super) const fn new(bounds: &'static [f64]) -> Self {
        let state = HistogramState {
            sum: 0.0,
            counts: Vec::new(),
        };
        Self {
            bounds,
            state: Mutex::new(state),
        }
    }

    pub(super) fn observe(&self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        let mut state = self.state.lock();
        state.counts.resize(self.bounds.len() + 1, 0);
        state.sum += value;
        state.counts[bucket] += 1;
    }

    pub(super) fn distribution(&self) -> Distribution {
        let state = self.state.lock();
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let counts = state.counts.iter().copied().chain(std::iter::repeat(0));
        Distribution {
            sum: state.sum,
            count: state.counts.iter().sum(),
            buckets: bounds.zip(counts).collect(),
        }
    }
}

/// Bucket bounds of handshakes and round-trip times in seconds, from the same machine to satellites.
pub(super) const SECONDS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_on_a_bound_counts_in_the_bucket_below_it() {
        let histogram = Histogram::new(&[1.0, 2.0]);
        assert_eq!(histogram.distribution().buckets.len(), 3);
        for value in [0.5, 1.0, 1.5, 9.0] {
            histogram.observe(value);
        }
        let distribution = histogram.distribution();
        assert_eq!(
            distribution.buckets,
            [(1.0, 2), (2.0, 1), (f64::INFINITY, 1)]
        );
        assert_eq!((distribution.count, distribution.sum), (4, 12.0));
    }
}
