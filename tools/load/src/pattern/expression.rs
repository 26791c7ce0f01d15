//! Generates random strings from regular expressions.

use courser_measure::Failure;
use rand::SeedableRng;
use rand::distr::Distribution;
use rand::rngs::SmallRng;

#[derive(Debug)]
pub(super) struct Expression(rand_regex::Regex);

impl Expression {
    /// Compiles an expression. Unbounded repetitions yield up to `max_repeat` repetitions above their minimum.
    /// Errors show `shown`, the expression as the user wrote it.
    pub(super) fn read(text: &str, shown: &str, max_repeat: u32) -> Result<Self, Failure> {
        let compiled = rand_regex::Regex::compile(text, max_repeat);
        compiled.map(Self).map_err(|error| {
            Failure::new(format!(
                "'{shown}' is not a valid pattern: {error}; use one such as \
                 https://example.org/[a-z]{{3}}/[0-9]+"
            ))
        })
    }

    /// Generates a string, which is the same for the same seed.
    pub(super) fn generate(&self, seed: u64) -> String {
        self.0.sample(&mut SmallRng::seed_from_u64(seed))
    }
}
