//! `courser-adversary`: runs attacks against a real process and reports what they cost it.

mod run;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run::main(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("attack: {error}");
            ExitCode::FAILURE
        }
    }
}
