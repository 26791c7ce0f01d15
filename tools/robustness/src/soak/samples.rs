//! The memory of the servers over time.

use std::time::Duration;

use serde_json::{Value, json};

/// Resident memory in KiB of the servers that are never restarted, sampled about once a second.
#[derive(Default)]
pub(super) struct Samples(Vec<(Duration, Vec<u64>)>);

/// The growth of one server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Drift {
    /// The medians of the first and of the last window in KiB.
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Drift {
    /// Returns the growth in MiB.
    pub(super) fn mib(self) -> f64 {
        (self.last as f64 - self.first as f64) / 1024.0
    }
}

impl Samples {
    pub(super) fn take(&mut self, now: Duration, rss: Vec<u64>) {
        self.0.push((now, rss));
    }

    /// Compares the window that begins at `settled` with the last one, for each server. Returns
    /// `None` if the run ended too early.
    pub(super) fn drift(&self, settled: Duration, window: Duration) -> Option<Vec<Drift>> {
        let end = self.0.last()?.0;
        let servers = self.0.first()?.1.len();
        let last = end.checked_sub(window)?;
        if last < settled + window {
            return None;
        }
        let drift = |server| {
            Some(Drift {
                first: self.median(server, settled, settled + window)?,
                last: self.median(server, last, end)?,
            })
        };
        (0..servers).map(drift).collect()
    }

    fn median(&self, server: usize, from: Duration, until: Duration) -> Option<u64> {
        let in_window = self.0.iter().filter(|(at, _)| *at >= from && *at <= until);
        let mut values: Vec<u64> = in_window
            .filter_map(|(_, rss)| rss.get(server).copied())
            .collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied()
    }

    /// Returns one sample per ten seconds as JSON.
    pub(super) fn json(&self) -> Value {
        let mut next = Duration::ZERO;
        let mut kept = Vec::new();
        for (at, rss) in &self.0 {
            if *at >= next {
                kept.push(json!({ "seconds": at.as_secs(), "rssKib": rss }));
                next = *at + Duration::from_secs(10);
            }
        }
        Value::Array(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_compares_the_medians_of_two_windows() {
        let mut samples = Samples::default();
        for second in 0..100 {
            // One server grows by 1 KiB per second, and one is constant. A single peak is ignored.
            let peak = if second == 35 { 100_000 } else { 0 };
            samples.take(Duration::from_secs(second), vec![1000 + second + peak, 500]);
        }
        let drift = samples.drift(Duration::from_secs(30), Duration::from_secs(10));
        let drift = drift.expect("both windows have samples");
        assert_eq!(
            drift[1],
            Drift {
                first: 500,
                last: 500
            }
        );
        assert_eq!(drift[0].last - drift[0].first, 58);
        assert_eq!(
            samples.drift(Duration::from_secs(85), Duration::from_secs(10)),
            None
        );
    }
}
