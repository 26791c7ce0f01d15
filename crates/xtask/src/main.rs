//! Checks of the repository itself: `cargo xtask tidy`, `conformance` and `rfc-map`; and attacks
//! on the server, `cargo xtask attack`, `robustness` and `soak`.

mod attack;
mod catalogue;
mod code;
mod conformance;
mod dependencies;
mod floors;
mod manifest;
mod requirements;
mod rfc_map;
mod tidy;
mod tree;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// What is wrong, one line each; a command without problems passes.
type Problems = Vec<String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problems) => {
            for problem in &problems {
                eprintln!("{problem}");
            }
            eprintln!("xtask: {} problem(s)", problems.len());
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Problems> {
    let Some((command, options)) = arguments.split_first() else {
        return Err(vec![USAGE.to_owned()]);
    };
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    match (command.as_str(), options.as_slice()) {
        ("tidy", []) => tidy::run(&tree::root()?),
        ("conformance", options) => {
            conformance::run(&tree::root()?, &conformance_options(options)?)
        }
        ("rfc-map", []) => rfc_map::run(&tree::root()?, rfc_map::Output::Write),
        ("rfc-map", ["--check"]) => rfc_map::run(&tree::root()?, rfc_map::Output::Check),
        ("rfc-map", ["--print"]) => rfc_map::run(&tree::root()?, rfc_map::Output::Print),
        ("attack", options) => attack::run(&tree::root()?, options),
        ("robustness", options) => attack::robustness(&tree::root()?, options),
        ("soak", options) => attack::soak(&tree::root()?, options),
        ("help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(vec![
            format!("cannot read `{}`", arguments.join(" ")),
            USAGE.to_owned(),
        ]),
    }
}

/// Prints to a reader that may leave early, such as `head`.
fn print(text: &str) {
    // Nobody is left to tell.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn conformance_options(options: &[&str]) -> Result<conformance::Options, Problems> {
    let mut read = conformance::Options::default();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match *option {
            "--missing" => read.missing = true,
            "--lists" => match rest.next() {
                Some(folder) => read.lists = Some(PathBuf::from(folder)),
                None => return Err(vec!["--lists wants a folder".to_owned()]),
            },
            other => return Err(vec![format!("unknown option `{other}`"), USAGE.to_owned()]),
        }
    }
    Ok(read)
}

const USAGE: &str = "\
usage: cargo xtask <command>

  tidy                  floors, dependencies, unsafe, file sizes, machine paths, and the
                        catalogues of limits, attacks and faults against the code
  conformance           docs/conformance.tsv against docs/requirements.tsv and the tests there are
      --missing         also print the receiver rules that no test is mapped to
      --lists FOLDER    read FOLDER/<package>.txt instead of running `cargo test -- --list`
  rfc-map               write docs/rfc-map.md: RFC section to file
      --check           fail when it is out of date instead
      --print           print it instead
  attack NAME|all       run attacks against a real server with honest clients beside them
      --seconds N       how long each attack lasts [default: 6]
      --json FILE       also write the report to this file
      --list            list the attacks with their labels
  robustness [ROW...]   measure the figures of docs/ROBUSTNESS.md
      --out FILE        write them into this document
      --help            rows and further options
  soak                  servers, honest clients, faults and attacks together
      --minutes N       how long [default: 60]
      --help            further options";
