//! Measures data rates over intervals of equal length.

/// Measures rates over intervals of equal length.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RateMeter {
    /// The length of an interval in seconds.
    width: f64,
    /// The index of the current interval, and its bytes so far.
    current: Option<(f64, u64)>,
}

/// The rate over one interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct IntervalRate {
    /// The end of the interval in seconds.
    pub(crate) end: f64,
    /// The rate in bits per second.
    pub(crate) rate: f64,
}

impl RateMeter {
    pub(crate) fn new(width: f64) -> Self {
        Self {
            width,
            current: None,
        }
    }

    /// Counts bytes, and returns the intervals that have ended, oldest first. Of the empty intervals
    /// after a silence, it returns only the first and the last.
    pub(crate) fn push(&mut self, time: f64, bytes: u64) -> [Option<IntervalRate>; 3] {
        let index = (time / self.width).floor();
        match &mut self.current {
            Some((at, sum)) if index <= *at => {
                *sum = sum.saturating_add(bytes);
                [None; 3]
            }
            current => {
                let ended = current.replace((index, bytes));
                let Some((at, sum)) = ended else {
                    return [None; 3];
                };
                let empty = index - at - 1.0;
                [
                    Some(self.interval(at, sum)),
                    (empty >= 1.0).then(|| self.interval(at + 1.0, 0)),
                    (empty >= 2.0).then(|| self.interval(index - 1.0, 0)),
                ]
            }
        }
    }

    /// Returns the rate over the current interval, as if it had ended.
    pub(crate) fn finish(&self) -> Option<IntervalRate> {
        self.current.map(|(at, sum)| self.interval(at, sum))
    }

    fn interval(&self, index: f64, bytes: u64) -> IntervalRate {
        IntervalRate {
            end: (index + 1.0) * self.width,
            rate: bytes as f64 * 8.0 / self.width,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_of_any_length_adds_two_points() {
        let mut meter = RateMeter::new(0.5);
        assert_eq!(meter.push(0.1, 100), [None; 3]);
        assert_eq!(meter.push(0.4, 25), [None; 3]);
        let points = meter.push(1e15, 1);
        let rates: Vec<_> = points.iter().flatten().map(|it| it.rate).collect();
        assert_eq!(rates, [2000.0, 0.0, 0.0]);
        assert_eq!(points[0].map(|it| it.end), Some(0.5));
        assert!(points[2].is_some_and(|it| it.end <= 1e15));
    }

    #[test]
    fn adjacent_intervals_add_no_empty_ones() {
        let mut meter = RateMeter::new(1.0);
        meter.push(0.0, 1);
        assert_eq!(meter.push(1.0, 2)[1..], [None, None]);
        assert_eq!(meter.finish().map(|it| it.rate), Some(16.0));
    }
}
