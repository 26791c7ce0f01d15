//! The mean and spread of values.

/// The mean and spread of values.
#[derive(Debug, Default)]
pub(super) struct Spread {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Spread {
    /// Adds a value (Welford's method).
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1.0;
        let before = value - self.mean;
        self.mean += before / self.count;
        self.squares += before * (value - self.mean);
    }

    /// Returns true if the values are about the same. Random losses come at any window, but those of a
    /// policer come when the window exceeds what it lets through.
    pub(super) fn is_narrow(&self) -> bool {
        let deviation = (self.squares / self.count.max(1.0)).sqrt();
        self.count >= MIN_REDUCTIONS && deviation <= self.mean * NARROW
    }
}

/// The number of reductions of the window from which on their spread is judged.
const MIN_REDUCTIONS: f64 = 5.0;
/// The largest standard deviation of the windows at a policer, as a share of their mean.
const NARROW: f64 = 0.25;
