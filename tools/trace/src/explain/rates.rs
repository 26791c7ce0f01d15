//! Rates of data over time.

use crate::qlog::Samples;

/// Bytes in intervals of equal length.
#[derive(Debug, Default)]
pub(super) struct Rates {
    width: f64,
    current: f64,
    bytes: u64,
    all: Samples<u64>,
}

impl Rates {
    /// Adds bytes. `rtt` is the round-trip time, which determines the length of the intervals.
    pub(super) fn on_data(&mut self, time: f64, bytes: u64, rtt: f64) {
        if self.width == 0.0 {
            self.width = (rtt / 2.0).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL);
        }
        let index = (time / self.width).floor();
        if index > self.current && self.bytes > 0 {
            self.all.push(std::mem::take(&mut self.bytes));
        }
        self.current = index;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns true if data flowed at about the same rate most of the time, which is that of the path.
    pub(super) fn is_steady(&self) -> bool {
        let mut all = self.all.as_slice().to_vec();
        all.sort_unstable();
        let Some(most) = all
            .get(all.len() * 9 / 10)
            .filter(|_| all.len() >= MIN_INTERVALS)
        else {
            return false;
        };
        let near = all
            .iter()
            .filter(|&&bytes| bytes.saturating_mul(4) >= most.saturating_mul(3))
            .count();
        near * 10 >= all.len() * 7
    }

    /// Returns true if the rate has doubled from the first third of the intervals to the last.
    pub(super) fn is_growing(&self) -> bool {
        let all = self.all.as_slice();
        let third = all.len().div_ceil(3);
        let sum = |sum: u64, &bytes: &u64| sum.saturating_add(bytes);
        let first = all.iter().take(third).fold(0, sum);
        let last = all.iter().rev().take(third).fold(0, sum);
        last >= first.saturating_mul(2) || all.len() < 3
    }
}

/// The shortest and the longest interval in seconds. Between them it follows the round-trip time.
const SHORTEST_INTERVAL: f64 = 0.005;
const LONGEST_INTERVAL: f64 = 0.1;
/// The number of intervals from which on a rate is judged.
const MIN_INTERVALS: usize = 10;
