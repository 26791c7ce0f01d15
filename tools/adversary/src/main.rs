//! `courser-adversary` runs attacks against real processes and reports their cost.
//!
//! It also measures the figures of `docs/ROBUSTNESS.md`, and runs honest clients beside the attacks.

mod run;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run::main(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("courser-adversary: {error}");
            ExitCode::FAILURE
        }
    }
}
