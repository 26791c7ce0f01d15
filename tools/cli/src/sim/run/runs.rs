//! Runs scenarios on several threads.

use std::sync::Arc;

use courser::telemetry::SinkFactory;
use courser_sim::report::{DEFAULT_POINTS, RunReport};
use courser_sim::run::{RunOptions, run};

use super::args::RunArguments;
use super::replay::replay;
use super::sources::Source;
use super::traces;
use crate::error::Failure;
use crate::sim::parallel::in_parallel;

/// The number of points of a series if there are more than [`MANY_RUNS`].
const FEW_POINTS: usize = 400;
/// The largest number of runs with long series: memory grows with the product of both.
const MANY_RUNS: usize = 32;

/// Runs scenarios. The reports are in the order of scenarios, then of seeds, for any number of threads.
///
/// `progress` is called after each run with the share of finished runs, from 0 to 1.
pub(super) fn run_all(
    arguments: &RunArguments,
    sources: &[Source],
    progress: impl Fn(f64) + Sync,
) -> Result<Vec<RunReport>, Failure> {
    let runs = usize::try_from(arguments.runs).unwrap_or(usize::MAX);
    let total = runs * sources.len();
    let points = if total > MANY_RUNS {
        FEW_POINTS
    } else {
        DEFAULT_POINTS
    };
    let one = |number: usize| {
        let seed = arguments.seed.wrapping_add((number % runs) as u64);
        run_one(arguments, &sources[number / runs], seed, points)
    };
    in_parallel(total, arguments.jobs, one, |done| {
        progress(courser_units::to_f64(done as u64) / courser_units::to_f64(total as u64));
    })
}

fn run_one(
    arguments: &RunArguments,
    source: &Source,
    seed: u64,
    points: usize,
) -> Result<RunReport, Failure> {
    let scenario = &source.scenario;
    let traces = match &arguments.qlog {
        Some(directory) => Some(traces::create(directory, &scenario.name, seed)?),
        None => None,
    };
    let options = RunOptions {
        points,
        sinks: traces.clone().map(|traces| traces as Arc<dyn SinkFactory>),
    };
    let report = run(scenario, seed, options).map_err(|stall| {
        let (name, command) = (&scenario.name, replay(arguments, source, seed));
        Failure::new(format!(
            "{name}: {stall}: this is a bug; reproduce with: {command}"
        ))
    })?;
    traces.as_deref().map_or(Ok(()), traces::check)?;
    Ok(report)
}
