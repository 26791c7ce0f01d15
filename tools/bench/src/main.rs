//! Runs one path of the core, so that callgrind can count its instructions: `cargo xtask instructions` does it.
//!
//! `courser-bench` lists the paths: name, unit and description, separated by tabs. `courser-bench NAME` runs a
//! path and prints how many of its units it has run. Two ends pass datagrams to each other in one thread and in
//! virtual time, with fixed seeds and without sockets, so each run executes the same instructions.

use std::process::ExitCode;

use courser_bench::{Path, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => {
            for path in Path::ALL {
                println!("{}\t{}\t{}", path.name(), path.unit(), path.description());
            }
            ExitCode::SUCCESS
        }
        [name] => match Path::ALL.into_iter().find(|path| path.name() == name) {
            Some(path) => {
                println!("{}", run(path));
                ExitCode::SUCCESS
            }
            None => {
                eprintln!("no path is called `{name}`");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: courser-bench [NAME]");
            ExitCode::FAILURE
        }
    }
}
