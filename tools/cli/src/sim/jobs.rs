//! Many runs on several threads.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use courser::telemetry::SinkFactory;
use courser_base::Mutex;
use courser_sim::report::{DEFAULT_POINTS, RunReport};
use courser_sim::run::{RunOptions, run};
use courser_units::to_f64;

use super::error::Error;
use super::run::{Source, traces};

/// Points of a series when there are too many runs to look at each one.
const FEW_POINTS: usize = 400;
/// Largest number of runs with long series: memory grows with the product of both.
const MANY_RUNS: usize = 32;

/// The repetition of scenarios.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repetition<'a> {
    /// The seed of the first run of each scenario; the others follow it.
    pub(super) seed: u64,
    /// Runs of each scenario.
    pub(super) runs: u64,
    /// Threads; one for each core without a number.
    pub(super) threads: Option<NonZeroUsize>,
    /// The directory of traces, if they are wanted.
    pub(super) traces: Option<&'a Path>,
}

/// Runs scenarios. The reports are in the order of scenarios, then of seeds, for any number of threads.
///
/// `progress` is called after each run with the share of runs that are over, from 0 to 1.
///
/// # Errors
/// When a simulated world stalls, or traces cannot be written.
pub(super) fn run_all(
    repetition: &Repetition<'_>,
    sources: &[Source],
    progress: impl Fn(f64) + Sync,
) -> Result<Vec<RunReport>, Error> {
    let runs = usize::try_from(repetition.runs).unwrap_or(usize::MAX);
    let total = runs * sources.len();
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = repetition
        .threads
        .map_or_else(cores, usize::from)
        .min(total);
    let points = if total > MANY_RUNS {
        FEW_POINTS
    } else {
        DEFAULT_POINTS
    };
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(source) = sources.get(index / runs).filter(|_| index < total) else {
                return;
            };
            let result = run_one(repetition, source, index % runs, points);
            if result.is_err() {
                // The other runs need not begin.
                next.store(total, Ordering::Relaxed);
            }
            let mut done = done.lock();
            done.push((index, result));
            progress(to_f64(done.len() as u64) / to_f64(total as u64));
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner();
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

fn run_one(
    repetition: &Repetition<'_>,
    source: &Source,
    index: usize,
    points: usize,
) -> Result<RunReport, Error> {
    let seed = repetition.seed.wrapping_add(index as u64);
    let scenario = &source.scenario;
    let traces = match repetition.traces {
        Some(directory) => Some(traces::create(directory, &scenario.name, seed)?),
        None => None,
    };
    let options = RunOptions {
        points,
        sinks: traces.clone().map(|traces| traces as Arc<dyn SinkFactory>),
    };
    let report = run(scenario, seed, options).map_err(|stall| Error::Stall {
        path: source.path.clone(),
        scenario: scenario.name.clone(),
        seed,
        stall: stall.to_string(),
    })?;
    traces.as_deref().map_or(Ok(()), traces::check)?;
    Ok(report)
}
