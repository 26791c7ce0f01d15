//! Arguments of `robustness`.

use std::path::PathBuf;
use std::time::Duration;

use super::rows::{ROWS, Row};
use crate::arguments::number;
use crate::process::sibling;

/// The command that the arguments select.
pub(super) enum Command {
    Help,
    Run(Arguments),
}

/// The options of a run.
pub(super) struct Arguments {
    pub(super) rows: Vec<&'static Row>,
    /// The document to update.
    pub(super) out: Option<PathBuf>,
    /// The file of all figures.
    pub(super) json: PathBuf,
    pub(super) courser: PathBuf,
    /// An earlier binary, for comparison.
    pub(super) before: Option<PathBuf>,
    pub(super) attack_time: Duration,
    pub(super) flood_time: Duration,
    soak_time: Option<Duration>,
    pub(super) attacks: Vec<String>,
    pub(super) is_quick: bool,
}

impl Arguments {
    /// Returns the duration of the row `soak`: an hour, or a minute for a trial.
    pub(super) fn soak_time(&self) -> Duration {
        let minutes = if self.is_quick { 1 } else { 60 };
        self.soak_time.unwrap_or(Duration::from_secs(60 * minutes))
    }
}

/// Returns the usage with the list of rows.
pub(super) fn usage() -> String {
    let mut text = USAGE.to_owned();
    for row in ROWS {
        text.push_str(&format!("\n  {:<22}{}", row.name, row.summary));
    }
    text
}

const USAGE: &str = "\
usage: cargo xtask robustness [OPTIONS] [ROW...]

Measures the figures of docs/ROBUSTNESS.md: all of them, which takes two hours, or only the given
rows. Figures of earlier runs stay in the JSON file until their row is measured again.

  --out FILE            write the figures into the generated part of this document
  --json FILE           the file of all figures [default: target/robustness.json]
  --profile NAME        build profile of both ends, release or dist [default: dist]
  --attack-seconds N    duration of each attack, at least 3 [default: 12]
  --flood-seconds N     the longest time of the row `flood` [default: 1800]
  --soak-minutes N      duration of the row `soak` [default: 60, with --quick 1]
  --attacks LIST        only these attacks, separated by commas
  --quick               fewer and shorter rounds for a trial, marked in the document
  --courser FILE        the binary under test [default: next to this program]
  --before FILE         an earlier binary, to compare the memory of idle connections

rows:";

pub(super) fn parse(arguments: &[String]) -> Result<Command, String> {
    let mut read = Arguments {
        rows: Vec::new(),
        out: None,
        json: PathBuf::from("target/robustness.json"),
        courser: sibling("courser"),
        before: None,
        attack_time: Duration::from_secs(12),
        flood_time: Duration::from_secs(1800),
        soak_time: None,
        attacks: Vec::new(),
        is_quick: false,
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || {
            rest.next()
                .ok_or_else(|| format!("{argument} needs a value"))
        };
        match argument.as_str() {
            "-h" | "--help" | "help" => return Ok(Command::Help),
            "--out" => read.out = Some(PathBuf::from(value()?)),
            "--json" => read.json = PathBuf::from(value()?),
            "--courser" => read.courser = PathBuf::from(value()?),
            "--before" => read.before = Some(PathBuf::from(value()?)),
            "--attack-seconds" => read.attack_time = seconds(argument, value()?)?,
            "--flood-seconds" => read.flood_time = seconds(argument, value()?)?,
            "--soak-minutes" => {
                let minutes = number(argument, value()?, 1, 1440)?;
                read.soak_time = Some(Duration::from_secs(60 * minutes));
            }
            "--attacks" => read.attacks = value()?.split(',').map(str::to_owned).collect(),
            "--quick" => read.is_quick = true,
            name => read.rows.push(row(name)?),
        }
    }
    if read.rows.is_empty() {
        read.rows = ROWS.iter().collect();
    }
    // The row `soak` takes over Ctrl-C, so it is the last one in any order of the arguments.
    read.rows.sort_by_key(|row| row.name == "soak");
    Ok(Command::Run(read))
}

fn row(name: &str) -> Result<&'static Row, String> {
    let found = ROWS.iter().find(|row| row.name == name);
    found.ok_or_else(|| format!("unknown row or option `{name}`\n{}", usage()))
}

fn seconds(name: &str, text: &str) -> Result<Duration, String> {
    number(name, text, 3, 36_000).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Arguments, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        match parse(&words)? {
            Command::Run(arguments) => Ok(arguments),
            Command::Help => Err("help".to_owned()),
        }
    }

    #[test]
    fn all_rows_run_unless_some_are_named() {
        assert_eq!(read(&[]).map(|it| it.rows.len()), Ok(ROWS.len()));
        let one = read(&["storm-1000", "--quick"]).expect("the row exists");
        assert_eq!(one.rows[0].name, "storm-1000");
        assert!(one.rows.len() == 1 && one.is_quick);
    }

    #[test]
    fn soak_takes_an_hour_unless_a_trial_or_a_time_is_requested() {
        let minutes = |words: &[&str]| {
            let read = read(words)?;
            Ok::<_, String>(read.soak_time().as_secs() / 60)
        };
        assert_eq!(minutes(&["soak"]), Ok(60));
        assert_eq!(minutes(&["--quick"]), Ok(1));
        assert_eq!(minutes(&["--quick", "--soak-minutes", "5"]), Ok(5));
        let error = minutes(&["--soak-minutes", "0"]).expect_err("the time is too short");
        assert_eq!(error, "--soak-minutes is `0`; allowed are 1 to 1440");
    }

    #[test]
    fn unknown_rows_are_refused_with_the_list_of_rows() {
        let error = read(&["storm"]).err().expect("the row does not exist");
        assert!(error.contains("`storm`") && error.contains("storm-1000"));
    }
}
