//! `courser sim run`: scenarios, each with one or many seeds.

mod args;
mod document;
mod outcome;
mod replay;
mod runs;
mod sources;
mod table;
mod traces;

pub(crate) use self::args::RunArguments;
pub(super) use self::outcome::Outcome;
use self::replay::replay;
use self::sources::Source;
use super::pages;
use crate::error::Failure;
use crate::output::{self, Progress};

pub(crate) fn main(arguments: &RunArguments) -> Result<(), Failure> {
    let sources = sources::read(arguments)?;
    let progress = Progress::new();
    progress.begin("running");
    let runs = runs::run_all(arguments, &sources, |share| progress.at(share));
    drop(progress);
    let runs = runs?;
    let outcomes = outcome::outcomes(&sources, &runs);
    if let Some(directory) = &arguments.report {
        pages::write(directory, &outcomes)?;
    }
    if arguments.json {
        let replay = |source: &Source, seed| replay(arguments, source, seed);
        output::line(document::document(&outcomes, replay)?);
    } else {
        table::print(arguments, &outcomes);
    }
    conclude(&outcomes)
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
