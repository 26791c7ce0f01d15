//! All random numbers of a run, from one seed.

use std::time::Duration;

use courser_sim::seed::{derive, mix};

/// Random numbers that follow from a seed and a name.
#[derive(Clone, Debug)]
pub struct SeededRandom {
    seed: u64,
    drawn: u64,
}

impl SeededRandom {
    pub fn new(seed: u64, name: &str) -> Self {
        Self {
            seed: derive(seed, name),
            drawn: 0,
        }
    }

    pub fn draw(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.seed ^ mix(self.drawn))
    }

    /// Returns a number from 0 to `end - 1`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end.max(1)
    }

    /// Returns a number from `min` to `max`, both included.
    pub fn between(&mut self, min: u64, max: u64) -> u64 {
        min + self.below(max - min + 1)
    }

    /// Returns a number from `min` to `max`, with half of all draws in the lower half of the
    /// orders of magnitude.
    pub fn magnitude(&mut self, min: u64, max: u64) -> u64 {
        let top = self.between(min.max(1).ilog2().into(), max.ilog2().into());
        self.between(1 << top, (1 << top) * 2 - 1).clamp(min, max)
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn millis(&mut self, min: u64, max: u64) -> Duration {
        Duration::from_millis(self.between(min, max))
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        let at = self.below(choices.len() as u64);
        choices[usize::try_from(at).expect("the index fits into usize")]
    }
}
