//! Runs the scenarios of a row and keeps their numbers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use courser_sim::report::{MEASURES, Measure, RunReport, quantile};
use courser_sim::run::{RunOptions, run};
use courser_sim::scenario::Scenario;

use super::data::{Data, Number, Numbers};
use super::list::{List, Row};
use super::{FiguresArguments, write};
use crate::error::Failure;
use crate::output;
use crate::sim::run::judge;

/// Points of a series: runs are not looked at one by one, but their pieces of time have to be
/// short beside a round trip.
const POINTS: usize = 1500;

/// Measures the scenarios of a row; after each its numbers are written.
pub(super) fn row(arguments: &FiguresArguments, list: &List, row: &Row) -> Result<(), Failure> {
    let path = list.data_of(row);
    for (scenario, runs) in list.scenarios(row)? {
        let only = arguments.only.as_deref();
        if only.is_some_and(|only| !scenario.name.contains(only)) {
            continue;
        }
        let runs = arguments.runs.unwrap_or(runs);
        let begun = std::time::Instant::now();
        let reports = all(arguments, &scenario, runs)?;
        let numbers = numbers(row, &scenario, &reports);
        note(&scenario, &numbers, begun.elapsed().as_secs_f64());
        let mut data = Data::read(&path)?;
        data.0.insert(scenario.name.clone(), numbers);
        write(&path, &data.to_text())?;
    }
    Ok(())
}

/// Runs a scenario with the seeds from one on, in their order.
fn all(
    arguments: &FiguresArguments,
    scenario: &Scenario,
    runs: u64,
) -> Result<Vec<RunReport>, Failure> {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.jobs.map_or_else(cores, usize::from);
    let (next, done) = (AtomicU64::new(1), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > runs {
                return;
            }
            let options = RunOptions {
                points: POINTS,
                sinks: None,
            };
            let result = run(scenario, seed, options).map_err(|stall| {
                let name = &scenario.name;
                Failure::new(format!("{name}, seed {seed}: {stall}: this is a bug"))
            });
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((seed, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(seed, _)| *seed);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The measures that the row shows or the scenario has bounds for.
fn numbers(row: &Row, scenario: &Scenario, reports: &[RunReport]) -> Numbers {
    let judged = judge(scenario, reports);
    let mut numbers = Numbers::new();
    for measure in MEASURES {
        let judged = judged
            .iter()
            .find(|it| it.bound.measure.name == measure.name);
        if judged.is_none() && !row.columns.iter().any(|column| column == measure.name) {
            continue;
        }
        let mut number = spread(measure, reports);
        number.bound = judged.map(|it| (it.bound.to_string(), it.verdict.holds));
        numbers.insert(measure.name.to_owned(), number);
    }
    numbers
}

fn spread(measure: &Measure, reports: &[RunReport]) -> Number {
    let values = reports.iter().filter_map(|it| (measure.of)(&it.measures));
    let values: Vec<f64> = values.collect();
    let at = |share| quantile(&values, share).unwrap_or(f64::NAN);
    Number {
        runs: reports.len() as u64,
        values: values.len() as u64,
        median: at(0.5),
        p10: at(0.1),
        p90: at(0.9),
        bound: None,
    }
}

/// A line for whoever waits.
fn note(scenario: &Scenario, numbers: &Numbers, seconds: f64) {
    let of = |(name, number): (&String, &Number)| {
        let holds = match &number.bound {
            Some((_, false)) => " (!)",
            _ => "",
        };
        format!("{name} {:.4}{holds}", number.median)
    };
    let numbers: Vec<String> = numbers.iter().map(of).collect();
    let name = &scenario.name;
    output::note(format!("{name}: {} [{seconds:.1} s]", numbers.join(", ")));
}
