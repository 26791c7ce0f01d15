//! `courser sim run`: scenarios, each with one or many seeds.

mod args;
mod document;
mod outcome;
mod replay;
mod sources;
mod table;
pub(super) mod traces;

pub(crate) use self::args::RunArguments;
use self::outcome::Outcome;
use self::replay::{command, replay};
use self::sources::Selection;
pub(super) use self::sources::Source;
use super::error::Error;
use super::jobs::{self, Repetition};
use crate::error::Failure;
use crate::output::{self, Progress};

pub(crate) fn main(arguments: &RunArguments) -> Result<(), Failure> {
    let sources = sources::read(&Selection {
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
    let runs = jobs::run_all(&repetition, &sources, |share| progress.at(share));
    drop(progress);
    let runs = runs.map_err(|error| explain(arguments, &error))?;
    let outcomes = outcome::outcomes(&sources, &runs);
    if let Some(directory) = &arguments.report {
        outcome::write_report(directory, &runs, &outcomes)
            .map_err(|error| explain(arguments, &error))?;
    }
    if arguments.json {
        let replay = |source: &Source, seed| replay(arguments, source, seed);
        let document = document::document(&outcomes, replay);
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

/// Fails if a bound does not hold.
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
