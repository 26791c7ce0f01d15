//! Values over time in bounded memory.

/// Points in time order. When there are too many, every second one goes, and of those that
/// follow only as many are taken.
#[derive(Clone, PartialEq, Debug)]
pub struct Samples<T> {
    kept: Vec<T>,
    /// One of so many is kept.
    stride: usize,
    /// How many came since the last one that was kept.
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
    /// Takes a value, or one of several.
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

    /// What is kept, in order.
    pub fn as_slice(&self) -> &[T] {
        &self.kept
    }

    /// True when some values were left out.
    pub fn is_thinned(&self) -> bool {
        self.stride > 1
    }
}

/// More than an image can show; a quarter of them are enough for a percentile.
pub const MAX_SAMPLES: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_what_is_kept_spans_all() {
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
