//! Arguments of the command line.

use std::path::PathBuf;
use std::time::Duration;

use super::process::sibling;

/// The command that the arguments select.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Command {
    Help,
    List,
    Run(Arguments),
}

/// The options of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Arguments {
    /// The attack, or `all`.
    pub(super) name: String,
    /// The duration of each attack over all rounds.
    pub(super) time: Duration,
    /// The file to which the report is also written as JSON.
    pub(super) json: Option<PathBuf>,
    /// The binary under attack.
    pub(super) courser: PathBuf,
}

pub(super) const USAGE: &str = "\
usage: cargo xtask attack NAME|all [--seconds N] [--json FILE]
       cargo xtask attack --list

Runs an attack against a real `courser serve`, or against `courser get` where the attacker is a
server, with honest clients beside it.

  --seconds N     duration of each attack, 3 to 3600 [default: 6]
  --json FILE     also write the report to this file
  --courser FILE  the binary under attack [default: next to this program]
  --list          list the attacks with their labels";

pub(super) fn parse(arguments: &[String]) -> Result<Command, String> {
    let mut read = Arguments {
        name: String::new(),
        time: Duration::from_secs(6),
        json: None,
        courser: sibling("courser"),
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || {
            rest.next()
                .ok_or_else(|| format!("{argument} needs a value"))
        };
        match argument.as_str() {
            "-h" | "--help" | "help" => return Ok(Command::Help),
            "--list" => return Ok(Command::List),
            "--seconds" => read.time = Duration::from_secs(number(argument, value()?, 3, 3600)?),
            "--json" => read.json = Some(PathBuf::from(value()?)),
            "--courser" => read.courser = PathBuf::from(value()?),
            name if !name.starts_with('-') && read.name.is_empty() => {
                name.clone_into(&mut read.name);
            }
            other => return Err(format!("unexpected argument `{other}`\n{USAGE}")),
        }
    }
    if read.name.is_empty() {
        return Err(format!("missing the name of an attack\n{USAGE}"));
    }
    Ok(Command::Run(read))
}

/// Reads the number of an option.
pub(super) fn number(name: &str, text: &str, least: u64, most: u64) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("{name} is `{text}`; allowed are {least} to {most}"))
}

#[cfg(test)]
mod tests;
