//! Runs the scenarios of a row and keeps their numbers.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use courser_base::Mutex;
use courser_sim::report::{MEASURES, Measure, RunReport, quantile};
use courser_sim::run::{RunOptions, run};
use courser_sim::scenario::Scenario;

use super::data::{Data, Number, Numbers};
use super::file::write;
use super::list::{List, Row};
use crate::sim::error::Error;
use crate::sim::verdict::judge;

/// Points of a series. Single runs are not shown, but their pieces of time have to be short beside a
/// round trip.
const POINTS: usize = 1500;

/// The settings of a measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measurement<'a> {
    /// Runs of each scenario, in place of the number in the list.
    pub(crate) runs: Option<u64>,
    /// Measures only scenarios whose names contain this text.
    pub(crate) only: Option<&'a str>,
    /// Threads; one for each core without a number.
    pub(crate) threads: Option<NonZeroUsize>,
}

/// Measures the scenarios of a row. After each scenario its numbers are written and `note` is called with
/// them and the time that the runs took.
///
/// # Errors
/// When a file of the list cannot be read or written, or a simulated world stalls.
pub(crate) fn row(
    measurement: &Measurement<'_>,
    list: &List,
    row: &Row,
    note: impl Fn(&Scenario, &Numbers, Duration),
) -> Result<(), Error> {
    let path = list.data_of(row);
    for (scenario, runs) in list.scenarios(row)? {
        if measurement
            .only
            .is_some_and(|only| !scenario.name.contains(only))
        {
            continue;
        }
        let runs = measurement.runs.unwrap_or(runs);
        let begun = Instant::now();
        let reports = all(measurement.threads, list, &scenario, runs)?;
        let numbers = numbers(row, &scenario, &reports);
        note(&scenario, &numbers, begun.elapsed());
        let mut data = Data::read(&path)?;
        data.0.insert(scenario.name.clone(), numbers);
        write(&path, &data.to_text())?;
    }
    Ok(())
}

/// Runs a scenario with the seeds from 1 on, and returns the reports in the order of seeds.
fn all(
    threads: Option<NonZeroUsize>,
    list: &List,
    scenario: &Scenario,
    runs: u64,
) -> Result<Vec<RunReport>, Error> {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.map_or_else(cores, usize::from);
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
            let result = run(scenario, seed, options).map_err(|stall| Error::Stall {
                path: list.file().to_owned(),
                scenario: scenario.name.clone(),
                seed,
                stall: stall.to_string(),
            });
            let mut done = done.lock();
            done.push((seed, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner();
    done.sort_by_key(|(seed, _)| *seed);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Returns the numbers of the measures that the row shows or the scenario has bounds for.
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
