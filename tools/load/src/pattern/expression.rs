//! Regular expressions from which strings are drawn.

use courser_measure::Failure;
use rand::SeedableRng;
use rand::distr::Distribution;
use rand::rngs::SmallRng;

#[derive(Debug)]
pub(super) struct Expression(rand_regex::Regex);

impl Expression {
    /// Reads an expression in which an unbounded repetition yields up to `max_repeat` more than it
    /// has to. Errors show it as the user wrote it.
    pub(super) fn read(text: &str, shown: &str, max_repeat: u32) -> Result<Self, Failure> {
        let compiled = rand_regex::Regex::compile(text, max_repeat);
        compiled.map(Self).map_err(|error| {
            Failure::new(format!(
                "'{shown}' is not a valid pattern: {error}; use one such as \
                 https://example.org/[a-z]{{3}}/[0-9]+"
            ))
        })
    }

    /// Draws a string, the same one for the same seed.
    pub(super) fn draw(&self, seed: u64) -> String {
        self.0.sample(&mut SmallRng::seed_from_u64(seed))
    }
}
