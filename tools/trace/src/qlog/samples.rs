//! A list of values over time in bounded memory.

/// A list of values in time order, thinned when it grows too long.
///
/// A full list drops every second value. Of the values that follow, it keeps the same share.
#[derive(Clone, PartialEq, Debug)]
pub struct Samples<T> {
    kept: Vec<T>,
    /// One of this many values is kept.
    stride: usize,
    /// Values skipped since the last one kept.
    skipped: usize,
}

impl<T> Default for Samples<T> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            stride: 1,
            skipped: 0,
        }
    }
}

impl<T: Copy> Samples<T> {
    /// Adds a value. A thinned list keeps only one of several.
    pub fn push(&mut self, value: T) {
        self.skipped += 1;
        if self.skipped < self.stride {
            return;
        }
        self.skipped = 0;
        if self.kept.len() >= MAX_SAMPLES {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
        }
        self.kept.push(value);
    }

    /// Returns the kept values in order.
    pub fn as_slice(&self) -> &[T] {
        &self.kept
    }

    /// Returns true if values were dropped.
    pub fn is_thinned(&self) -> bool {
        self.stride > 1
    }
}

/// The largest number of values in a list: more than an image can show. A quarter of them are enough for
/// a percentile.
pub const MAX_SAMPLES: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_values_span_all_added_ones_in_bounded_memory() {
        let mut samples = Samples::default();
        let count = MAX_SAMPLES as u32 * 5;
        (0..count).for_each(|at| samples.push(at));
        let kept = samples.as_slice();
        assert!(kept.len() <= MAX_SAMPLES && kept.len() >= MAX_SAMPLES / 2);
        assert!(kept.is_sorted() && samples.is_thinned());
        assert_eq!(kept[0], 0);
        assert!(*kept.last().expect("some") > count - 16);
    }
}
