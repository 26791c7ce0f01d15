//! Runs one path of the core, so that callgrind can count its instructions: `cargo xtask instructions` does it.
//!
//! `courser-bench` lists the paths: name, unit and description, separated by tabs. `courser-bench NAME` runs a
//! path and prints how many of its units it has run. Two ends pass datagrams to each other in one thread and in
//! virtual time, with fixed seeds and without sockets, so each run executes the same instructions.

mod get;
mod handshakes;
mod meter;
mod null_tls;
mod pair;
mod path;
mod requests;
mod transfer;

use std::process::ExitCode;

use crate::meter::Meter;
use crate::path::Path;

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

/// Runs a path, and returns the number of its units.
fn run(path: Path) -> u64 {
    let meter = Meter::new(path);
    match path {
        Path::Send | Path::Receive | Path::AckSend | Path::AckReceive => transfer::run(&meter),
        Path::RequestClient | Path::RequestServer => requests::run(&meter),
        Path::GetClient | Path::GetServer => get::run(&meter),
        Path::HandshakeClient | Path::HandshakeServer => handshakes::run(&meter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths check their own results: what arrives, and where it ends.
    #[test]
    fn each_path_runs_and_has_a_name_of_its_own() {
        let mut names = std::collections::BTreeSet::new();
        for path in Path::ALL {
            assert!(run(path) > 0, "{path:?}");
            assert!(names.insert(path.name()), "{path:?}");
        }
    }

    #[test]
    fn an_acknowledgment_is_for_as_many_packets_as_its_description_says() {
        let (packets, acknowledgments) = (run(Path::Send), run(Path::AckSend));
        let each = (packets as f64 / acknowledgments as f64).round();
        let said = format!("an acknowledgment of {each} such packets");
        assert!(Path::AckSend.description().starts_with(&said), "{said}");
    }
}
