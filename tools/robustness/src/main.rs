//! `courser-robustness` attacks real processes and reports what that costs them.
//!
//! It measures the figures of `docs/ROBUSTNESS.md`, and soaks servers for hours, with honest clients beside the
//! attacks of `courser-adversary`.

mod arguments;
mod clients;
mod helper;
mod honest;
mod hosts;
mod ip_proxy;
mod measure;
mod objects;
mod origin;
mod process;
mod report;
mod robustness;
mod soak;
mod stage;

use std::path::Path;
use std::process::ExitCode;

use courser_adversary::{Plan, attacks};

use self::arguments::{Arguments, Command};
use self::measure::Row;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match command(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("courser-robustness: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command that the arguments select.
fn command(arguments: &[String]) -> Result<(), String> {
    match arguments.split_first() {
        Some((word, rest)) if word == "robustness" => return robustness::main(rest),
        Some((word, rest)) if word == "soak" => return soak::main(rest),
        Some((word, rest)) if word == "clients" => return clients::main(rest),
        Some((word, [])) if word == "origin" => return origin::main(),
        Some((word, [])) if word == "ip-proxy" => return ip_proxy::main(),
        _ => {}
    }
    match arguments::parse(arguments)? {
        Command::Help => {
            println!("{}", arguments::USAGE);
            Ok(())
        }
        Command::List => {
            print!("{}", report::list(attacks::ALL));
            Ok(())
        }
        Command::Run(arguments) => run(&arguments),
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let plans: Vec<&Plan> = match arguments.name.as_str() {
        "all" => attacks::ALL.iter().collect(),
        name => vec![attacks::find(name).ok_or_else(|| unknown(name))?],
    };
    let site = process::Site::make()?;
    let mut rows: Vec<Row> = Vec::new();
    for plan in plans {
        eprintln!("{}: {}", plan.name, plan.summary);
        rows.push(measure::measure(plan, arguments, &site)?);
    }
    print!("{}", report::table(&rows));
    if let Some(path) = &arguments.json {
        write_json(path, &rows)?;
    }
    report::verdict(&rows)
}

fn write_json(path: &Path, rows: &[Row]) -> Result<(), String> {
    let text = report::json(rows);
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn unknown(name: &str) -> String {
    format!("unknown attack `{name}`; allowed are `all` and the names of `--list`")
}
