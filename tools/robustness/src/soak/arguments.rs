//! Arguments of `soak`.

use std::path::PathBuf;
use std::time::Duration;

use crate::arguments::number;
use crate::process::sibling;

/// The command that the arguments select.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Command {
    Help,
    Run(Arguments),
}

/// The options of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Arguments {
    pub(super) time: Duration,
    pub(super) connections: u32,
    /// The mean pause between two requests of a connection.
    pub(super) pause: Duration,
    pub(super) seed: u64,
    /// The file in which figures are stored.
    pub(super) json: PathBuf,
    pub(super) courser: PathBuf,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(3600),
            connections: 2000,
            pause: Duration::from_millis(4000),
            seed: 1,
            json: PathBuf::from("target/robustness.json"),
            courser: sibling("courser"),
        }
    }
}

pub(super) const USAGE: &str = "\
usage: cargo xtask soak [OPTIONS]

Runs three servers with honest clients, some of them through links that lose 1 % of the packets and
change ports. One server is restarted repeatedly, and all attacks run in turn. Every response is
checked byte for byte.

  --minutes N       duration, 1 to 1440 [default: 60]
  --connections N   simultaneous honest connections, 8 to 10000 [default: 2000]
  --pause-ms N      mean pause between two requests of a connection [default: 4000]
  --seed N          seed of the clients [default: 1]
  --json FILE       the file of all figures [default: target/robustness.json]
  --profile NAME    build profile of both ends, release or dist [default: dist]
  --courser FILE    the binary under test [default: next to this program]";

pub(super) fn parse(arguments: &[String]) -> Result<Command, String> {
    let mut read = Arguments::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || {
            rest.next()
                .ok_or_else(|| format!("{argument} needs a value"))
        };
        match argument.as_str() {
            "-h" | "--help" | "help" => return Ok(Command::Help),
            "--minutes" => {
                let minutes = number(argument, value()?, 1, 1440)?;
                read.time = Duration::from_secs(60 * minutes);
            }
            "--connections" => {
                let connections = number(argument, value()?, 8, 10_000)?;
                read.connections = u32::try_from(connections).expect("10 000 at most");
            }
            "--pause-ms" => {
                read.pause = Duration::from_millis(number(argument, value()?, 1, 20_000)?);
            }
            "--seed" => read.seed = number(argument, value()?, 0, u64::MAX)?,
            "--json" => read.json = PathBuf::from(value()?),
            "--courser" => read.courser = PathBuf::from(value()?),
            other => return Err(format!("unexpected argument `{other}`\n{USAGE}")),
        }
    }
    Ok(Command::Run(read))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Command, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn an_hour_with_2000_connections_is_the_default() {
        let Ok(Command::Run(arguments)) = read("") else {
            panic!("no argument is required");
        };
        assert_eq!(arguments.time, Duration::from_secs(3600));
        assert_eq!(arguments.connections, 2000);
    }

    #[test]
    fn numbers_out_of_range_are_refused_with_the_range() {
        let error = read("--minutes 0").expect_err("the time is too short");
        assert_eq!(error, "--minutes is `0`; allowed are 1 to 1440");
        assert!(read("--connections 7").is_err());
    }
}
