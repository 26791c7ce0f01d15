//! courser beside other stacks, in one interleaved run. See README.md.

mod runner;

use std::process::ExitCode;

fn main() -> ExitCode {
    match runner::run() {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("peers: {failure}");
            ExitCode::FAILURE
        }
    }
}
