//! `courser sim run`: scenarios, each with one or many seeds.

mod table;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use courser::Algorithm;
use courser_report::Error;
use courser_report::scenarios::{self, Outcome, Repetition, Selection, Source};

use crate::error::Failure;
use crate::output::{self, Progress};
use crate::values::parse_controller;

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArguments {
    /// Scenario files (.toml), or directories of them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Run only the scenario with this name
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// Seed of the first run; a seed reproduces its run on every machine
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Runs of each scenario, with consecutive seeds
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    runs: u64,

    /// Number of parallel runs [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Congestion control algorithm of all flows [default: as in the scenario]
    #[arg(long, value_name = "NAME", value_parser = parse_controller)]
    cc: Option<Algorithm>,

    /// Write an HTML report with charts to this directory
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,

    /// Replace the bounds of scenarios by those in this TOML file
    ///
    /// The file has one table for each scenario, by name.
    #[arg(long, value_name = "FILE")]
    bounds: Option<PathBuf>,

    /// Write a qlog trace of both ends of every connection to this directory
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,

    /// Print results as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  courser sim run scenarios/bufferbloat.toml
      Run a scenario and check its bounds
  courser sim run scenarios --runs 20 --cc bbr
      Run all scenarios 20 times each, with BBR
  courser sim run scenarios/bufferbloat.toml --report report --qlog traces
      Write charts and traces";

pub(crate) fn main(arguments: &RunArguments) -> Result<(), Failure> {
    let sources = scenarios::read(&Selection {
        files: &arguments.files,
        only: arguments.only.as_deref(),
        controller: arguments.cc,
        bounds: arguments.bounds.as_deref(),
    })
    .map_err(|error| explain(arguments, &error))?;
    let repetition = Repetition {
        seed: arguments.seed,
        runs: arguments.runs,
        threads: arguments.jobs,
        traces: arguments.qlog.as_deref(),
    };
    let progress = Progress::new();
    progress.begin("running");
    let runs = scenarios::run_all(&repetition, &sources, |share| progress.at(share));
    drop(progress);
    let runs = runs.map_err(|error| explain(arguments, &error))?;
    let outcomes = scenarios::outcomes(&sources, &runs);
    if let Some(directory) = &arguments.report {
        scenarios::write_report(directory, &runs, &outcomes)
            .map_err(|error| explain(arguments, &error))?;
    }
    if arguments.json {
        let replay = |source: &Source, seed| replay(arguments, source, seed);
        let document = scenarios::document(&outcomes, replay);
        output::line(document.map_err(|error| explain(arguments, &error))?);
    } else {
        table::print(arguments, &outcomes);
    }
    conclude(&outcomes)
}

/// Names the flags and commands that help.
fn explain(arguments: &RunArguments, error: &Error) -> Failure {
    Failure::new(match error {
        Error::Report { .. } => format!("{error}; choose another place with --report"),
        Error::Traces { .. } => format!("{error}; choose another place with --qlog"),
        Error::Stall {
            path,
            scenario,
            seed,
            stall,
        } => {
            let command = command(arguments, path, scenario, *seed);
            format!("{scenario}: {stall}: this is a bug; reproduce with: {command}")
        }
        error => error.to_string(),
    })
}

/// Success unless a bound does not hold.
fn conclude(outcomes: &[Outcome<'_>]) -> Result<(), Failure> {
    let all = outcomes.iter().flat_map(|outcome| &outcome.judged);
    let (total, failed) = all.fold((0, 0), |(total, failed), judged| {
        (total + 1, failed + u32::from(!judged.verdict.holds))
    });
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(format!("{failed} of {total} bounds violated"))),
    }
}

/// The command that repeats one run.
fn replay(arguments: &RunArguments, source: &Source, seed: u64) -> String {
    command(arguments, &source.path, &source.scenario.name, seed)
}

fn command(arguments: &RunArguments, path: &Path, scenario: &str, seed: u64) -> String {
    use std::fmt::Write;
    // Writing to strings cannot fail.
    let mut command = format!("courser sim run {}", quoted(path, cfg!(windows)));
    let is_alone = path.file_stem().is_some_and(|stem| stem == scenario);
    // A file may have many; its name says so where it is not that of the scenario.
    if !is_alone {
        let _ = write!(command, " --only {scenario}");
    }
    let _ = write!(command, " --seed {seed}");
    if let Some(controller) = arguments.cc {
        let _ = write!(command, " --cc {controller}");
    }
    if let Some(bounds) = &arguments.bounds {
        let _ = write!(command, " --bounds {}", quoted(bounds, cfg!(windows)));
    }
    command
}

/// A path as a shell takes it.
fn quoted(path: &Path, is_windows: bool) -> String {
    let path = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    if !path.is_empty() && path.chars().all(is_plain) {
        return path.into_owned();
    }
    match is_windows {
        // A path has no such marks in it there.
        true => format!("\"{path}\""),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_a_shell_would_stumble() {
        let quoted = |path: &str, is_windows| quoted(path.as_ref(), is_windows);
        for is_windows in [false, true] {
            assert_eq!(
                quoted("scenarios/a-1.toml", is_windows),
                "scenarios/a-1.toml"
            );
        }
        assert_eq!(quoted("my file.toml", false), "'my file.toml'");
        assert_eq!(quoted("it's", false), "'it'\\''s'");
        assert_eq!(quoted("C:\\my it's.toml", true), "\"C:\\my it's.toml\"");
    }
}
