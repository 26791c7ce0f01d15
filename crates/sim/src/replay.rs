//! Tests over many seeds, with a command that repeats a failed seed.

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs `test` once for each of `count` seeds: 1, 2, 3 and so on.
///
/// If the test panics, prints the command that repeats this run before the panic continues. Two
/// environment variables change the runs: `COURSER_SEED=17` runs only seed 17, and
/// `COURSER_RUNS=5000` runs that many seeds instead of `count`.
///
/// # Panics
/// If `test` does, and if a variable is not a number.
pub fn for_each_seed(count: u64, mut test: impl FnMut(u64)) {
    if let Some(seed) = number_from("COURSER_SEED") {
        return test(seed);
    }
    for seed in 1..=number_from("COURSER_RUNS").unwrap_or(count) {
        let result = catch_unwind(AssertUnwindSafe(|| test(seed)));
        if let Err(panic) = result {
            eprintln!("seed {seed} failed; to repeat it:\n  {}", command(seed));
            resume_unwind(panic);
        }
    }
}

/// Returns the command that repeats the test on this thread with this seed.
fn command(seed: u64) -> String {
    let package = env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "PACKAGE".to_owned());
    // The harness runs each test on a thread with its name.
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("TEST");
    format!("COURSER_SEED={seed} cargo test -p {package} -- --exact {name} --nocapture")
}

fn number_from(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    let number = text.parse();
    assert!(
        number.is_ok(),
        "{variable} is '{text}', it must be a whole number"
    );
    number.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_runs_once() {
        let mut seeds = Vec::new();
        for_each_seed(4, |seed| seeds.push(seed));
        assert_eq!(seeds, [1, 2, 3, 4]);
    }

    #[test]
    fn failing_seed_ends_the_test_with_its_own_panic() {
        let mut last = 0;
        let result = catch_unwind(AssertUnwindSafe(|| {
            for_each_seed(10, |seed| {
                last = seed;
                assert_ne!(seed, 3, "three is unlucky");
            });
        }));
        let panic = result.expect_err("seed 3 panics");
        let text = panic
            .downcast_ref::<String>()
            .expect("the panic has a message");
        assert!(text.contains("three is unlucky"), "{text}");
        assert_eq!(last, 3);
    }

    #[test]
    fn command_names_seed_package_and_test() {
        let command = command(17);
        assert!(
            command.starts_with("COURSER_SEED=17 cargo test -p courser-sim"),
            "{command}"
        );
        assert!(
            command.contains("command_names_seed_package_and_test"),
            "{command}"
        );
    }
}
