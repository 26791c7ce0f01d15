//! Bytes into bits per second.

/// Counts bytes in stretches of equal length.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RateMeter {
    /// Seconds.
    width: f64,
    /// Which stretch, counted from the beginning, and its bytes so far.
    current: Option<(f64, u64)>,
}

/// The rate over one stretch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Stretch {
    /// When it ended, in seconds.
    pub(crate) end: f64,
    /// Bits per second.
    pub(crate) rate: f64,
}

impl RateMeter {
    pub(crate) fn new(width: f64) -> Self {
        Self {
            width,
            current: None,
        }
    }

    /// Counts bytes. Gives the stretches that are over, oldest first: after a silence, of the
    /// silent ones only the first and the last.
    pub(crate) fn push(&mut self, time: f64, bytes: u64) -> [Option<Stretch>; 3] {
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
                let silent = index - at - 1.0;
                [
                    Some(self.stretch(at, sum)),
                    (silent >= 1.0).then(|| self.stretch(at + 1.0, 0)),
                    (silent >= 2.0).then(|| self.stretch(index - 1.0, 0)),
                ]
            }
        }
    }

    /// The stretch under way, as if it were over.
    pub(crate) fn finish(&self) -> Option<Stretch> {
        self.current.map(|(at, sum)| self.stretch(at, sum))
    }

    fn stretch(&self, index: f64, bytes: u64) -> Stretch {
        Stretch {
            end: (index + 1.0) * self.width,
            rate: bytes as f64 * 8.0 / self.width,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_costs_two_points_however_long() {
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
    fn neighbouring_stretches_have_nothing_between() {
        let mut meter = RateMeter::new(1.0);
        meter.push(0.0, 1);
        assert_eq!(meter.push(1.0, 2)[1..], [None, None]);
        assert_eq!(meter.finish().map(|it| it.rate), Some(16.0));
    }
}
