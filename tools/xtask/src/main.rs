//! `cargo xtask`: checks the repository itself, and attacks the server.
//!
//! `house` reports sizes. `tidy`, `features`, `wasm`, `conformance`, `rfc-map`, `guide` and `instructions` are checks.
//! `attack`, `robustness` and `soak` run attacks. `sbom` and `release-notes` write what a release needs.

mod attack;
mod catalogue;
mod code;
mod conformance;
mod dependencies;
mod features;
mod figures;
mod guide;
mod house;
mod instructions;
mod layers;
mod manifest;
mod metadata;
mod modules;
mod release_notes;
mod report;
mod requirements;
mod rfc_map;
mod sbom;
mod tidy;
mod tree;
mod wasm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use report::Problems;

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
        ("features", []) => features::run(&tree::root()?),
        ("conformance", options) => {
            conformance::run(&tree::root()?, &conformance_options(options)?)
        }
        ("rfc-map", []) => rfc_map::run(&tree::root()?, rfc_map::Output::Write),
        ("rfc-map", ["--check"]) => rfc_map::run(&tree::root()?, rfc_map::Output::Check),
        ("rfc-map", ["--print"]) => rfc_map::run(&tree::root()?, rfc_map::Output::Print),
        ("guide", options) => guide::run(&tree::root()?, &guide_options(options)?),
        ("instructions", []) => instructions::run(&tree::root()?, instructions::Task::Check),
        ("instructions", ["--write"]) => {
            instructions::run(&tree::root()?, instructions::Task::Write)
        }
        ("house", options) => house::run(&tree::root()?, &house_options(options)?),
        ("figures", []) => figures::run(&tree::root()?),
        ("wasm", []) => wasm::run(&tree::root()?),
        ("sbom", []) => sbom::run(&tree::root()?, None),
        ("sbom", [file]) => sbom::run(&tree::root()?, Some(Path::new(file))),
        ("release-notes", []) => release_notes::run(&tree::root()?, "Unreleased"),
        ("release-notes", [version]) => release_notes::run(&tree::root()?, version),
        ("attack", options) => attack::run(&tree::root()?, options),
        ("robustness", options) => attack::robustness(&tree::root()?, options),
        ("soak", options) => attack::soak(&tree::root()?, options),
        ("help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(vec![
            format!("unknown command `{}`", arguments.join(" ")),
            USAGE.to_owned(),
        ]),
    }
}

fn conformance_options(options: &[&str]) -> Result<conformance::Options, Problems> {
    let mut read = conformance::Options::default();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match *option {
            "--missing" => read.missing = true,
            "--lists" => match rest.next() {
                Some(folder) => read.lists = Some(PathBuf::from(folder)),
                None => return Err(vec!["--lists needs a folder".to_owned()]),
            },
            other => return Err(vec![format!("unknown option `{other}`"), USAGE.to_owned()]),
        }
    }
    Ok(read)
}

fn house_options(options: &[&str]) -> Result<house::Options, Problems> {
    let mut read = house::Options::default();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        let mut value = || {
            let value = rest.next().map(|value| (*value).to_owned());
            value.ok_or_else(|| vec![format!("{option} needs a value")])
        };
        match *option {
            "--crate" => read.folder = Some(value()?),
            "--type" => read.name = Some(value()?),
            "--all" => read.all = true,
            "--json" => read.json = true,
            other => return Err(vec![format!("unknown option `{other}`"), USAGE.to_owned()]),
        }
    }
    Ok(read)
}

fn guide_options(options: &[&str]) -> Result<guide::Options, Problems> {
    let mut read = guide::Options::default();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match *option {
            "--check" => read.check = true,
            "--programs" => match rest.next() {
                Some(folder) => read.programs = Some(PathBuf::from(folder)),
                None => return Err(vec!["--programs needs a folder".to_owned()]),
            },
            option if option.starts_with('-') => {
                return Err(vec![format!("unknown option `{option}`"), USAGE.to_owned()]);
            }
            page => read.pages.push(page.to_owned()),
        }
    }
    Ok(read)
}

const USAGE: &str = "\
usage: cargo xtask <command>

  tidy                  check layers, module order, import cycles, dependencies, unsafe, clocks, machine
                        paths, registries, and the catalogues against the code
  features              check that each feature compiles alone
  conformance           check docs/conformance.tsv against docs/requirements.tsv and the tests
      --missing         also print the rules without a test
      --lists FOLDER    read FOLDER/<package>.txt instead of running `cargo test -- --list`
  rfc-map               write docs/rfc-map.md, which maps sections of RFCs to files
      --check           fail if it is out of date instead
      --print           print it instead
  guide [PAGE...]       run the commands of docs/guide and write their output into its pages
      --check           fail if an output has another form instead
      --programs FOLDER folder with `courser` and `examples` [default: target/debug]
  instructions          count the instructions of the core's paths with callgrind, and fail if one is more
                        than 3 % above its budget in docs/instructions.tsv; skipped without valgrind
      --write           make the counts the budgets instead
  house                 report the types with the most methods, and the lines of each crate; fails nothing
      --crate NAME      report the crate in this folder only
      --type NAME       print each method, function, field and view of the types of this name
      --all             report all types rather than the first 40
      --json            print the report as JSON
  wasm                  check that the protocols without I/O compile for WebAssembly; skipped without its
                        standard library
  figures               write measured figures from the document that owns them into their copies
  sbom [FILE]           write the packages inside the binary as CycloneDX JSON
  release-notes [VERSION]  print its part of CHANGELOG.md [default: Unreleased]
  attack NAME|all       run attacks against a real server that also has honest clients
      --seconds N       duration of each attack [default: 6]
      --json FILE       write the report to this file as well
      --list            list the attacks with their labels
  robustness [ROW...]   measure the figures of docs/ROBUSTNESS.md
      --out FILE        write them into this document
      --help            rows and further options
  soak                  servers, honest clients, faults and attacks together
      --minutes N       duration [default: 60]
      --help            further options";
