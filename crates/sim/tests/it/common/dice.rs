//! All random numbers of a run, from one seed.

use std::time::Duration;

use courser_sim::seed::{derive, mix};

/// Random numbers that follow from a seed and a name.
#[derive(Clone, Debug)]
pub struct Dice {
    seed: u64,
    drawn: u64,
}

impl Dice {
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

    /// Returns a number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// Returns a number from `least` to `most`, with half of all draws in the lower half of the
    /// orders of magnitude.
    pub fn magnitude(&mut self, least: u64, most: u64) -> u64 {
        let top = self.between(least.max(1).ilog2().into(), most.ilog2().into());
        self.between(1 << top, (1 << top) * 2 - 1)
            .clamp(least, most)
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.between(least, most))
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        let at = self.below(choices.len() as u64);
        choices[usize::try_from(at).expect("an index")]
    }
}
