//! The `courser` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    courser_cli::main()
}
