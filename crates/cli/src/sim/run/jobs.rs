//! Many runs on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use courser::telemetry::SinkFactory;
use courser_sim::report::{DEFAULT_POINTS, RunReport};
use courser_sim::run::{RunOptions, run};

use super::{RunArguments, Source, outputs, replay};
use crate::error::Failure;
use crate::output::{Progress, to_f64};

/// Points of a series when there are so many runs that nobody looks at each.
const FEW_POINTS: usize = 400;
/// Runs beyond which series are kept short: memory grows with their product.
const MANY_RUNS: usize = 32;

/// Runs of each scenario.
pub(super) fn per_scenario(arguments: &RunArguments) -> usize {
    usize::try_from(arguments.runs).unwrap_or(usize::MAX)
}

/// Runs everything; the reports stand in the order of scenarios, then of seeds, however many
/// threads there are.
pub(super) fn run_all(
    arguments: &RunArguments,
    sources: &[Source],
) -> Result<Vec<RunReport>, Failure> {
    let runs = per_scenario(arguments);
    let total = runs * sources.len();
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.jobs.map_or_else(cores, usize::from).min(total);
    let points = if total > MANY_RUNS {
        FEW_POINTS
    } else {
        DEFAULT_POINTS
    };
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let progress = Progress::new();
    progress.begin("running");
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(source) = sources.get(index / runs).filter(|_| index < total) else {
                return;
            };
            let result = run_one(arguments, source, index % runs, points);
            if result.is_err() {
                // The others need not begin.
                next.store(total, Ordering::Relaxed);
            }
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((index, result));
            progress.at(to_f64(done.len() as u64) / to_f64(total as u64));
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

fn run_one(
    arguments: &RunArguments,
    source: &Source,
    index: usize,
    points: usize,
) -> Result<RunReport, Failure> {
    let seed = arguments.seed.wrapping_add(index as u64);
    let scenario = &source.scenario;
    let traces = match &arguments.qlog {
        Some(directory) => Some(outputs::traces(directory, &scenario.name, seed)?),
        None => None,
    };
    let options = RunOptions {
        points,
        sinks: traces.clone().map(|traces| traces as Arc<dyn SinkFactory>),
    };
    let report = run(scenario, seed, options).map_err(|stall| {
        let command = replay(arguments, source, seed);
        let name = &scenario.name;
        Failure::new(format!(
            "{name}: {stall}: this is a bug; reproduce with: {command}"
        ))
    })?;
    traces.as_deref().map_or(Ok(()), outputs::check)?;
    Ok(report)
}
