//! Runs the scenarios of a row and keeps their numbers.

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use courser_sim::report::{MEASURES, Measure, RunReport};
use courser_sim::run::{RunOptions, run};
use courser_sim::scenario::Scenario;

use super::args::FiguresArguments;
use super::data::{Data, Number, Numbers};
use super::list::{List, Row};
use crate::error::Failure;
use crate::output;
use crate::sim::file;
use crate::sim::parallel::in_parallel;
use crate::sim::spread::Spread;
use crate::sim::verdict::judge;

/// Number of points of a series. Single runs are not shown, but the intervals between points have to be short
/// compared to a round trip.
const POINTS: usize = 1500;

/// Measures the scenarios of a row. The numbers of each scenario are printed and written to the file of the row when its
/// runs are over.
pub(super) fn row(arguments: &FiguresArguments, list: &List, row: &Row) -> Result<(), Failure> {
    let path = list.data_of(row);
    for (scenario, runs) in list.scenarios(row)? {
        let only = arguments.only.as_deref();
        if only.is_some_and(|only| !scenario.name.contains(only)) {
            continue;
        }
        let runs = arguments.runs.unwrap_or(runs);
        let began = Instant::now();
        let reports = run_seeds(arguments.jobs, &scenario, runs)?;
        let numbers = numbers(row, &scenario, &reports);
        note(&scenario, &numbers, began.elapsed());
        let mut data = Data::read(&path)?;
        data.0.insert(scenario.name.clone(), numbers);
        file::replace(&path, &data.to_text())?;
    }
    Ok(())
}

/// Prints the numbers of a scenario.
fn note(scenario: &Scenario, numbers: &Numbers, took: Duration) {
    let of = |(name, number): (&String, &Number)| {
        let holds = match &number.bound {
            Some((_, false)) => " (!)",
            _ => "",
        };
        format!("{name} {:.4}{holds}", number.median)
    };
    let numbers: Vec<String> = numbers.iter().map(of).collect();
    let (name, seconds) = (&scenario.name, took.as_secs_f64());
    output::note(format!("{name}: {} [{seconds:.1} s]", numbers.join(", ")));
}

/// Runs a scenario with the seeds from 1 on, and returns the reports in the order of seeds.
fn run_seeds(
    threads: Option<NonZeroUsize>,
    scenario: &Scenario,
    runs: u64,
) -> Result<Vec<RunReport>, Failure> {
    let one = |number: usize| {
        let seed = number as u64 + 1;
        let options = RunOptions {
            points: POINTS,
            sinks: None,
        };
        run(scenario, seed, options).map_err(|stall| stalled(scenario, seed, &stall))
    };
    let runs = usize::try_from(runs).unwrap_or(usize::MAX);
    in_parallel(runs, threads, one, |_| {})
}

/// Returns the error of a run that stalled before its end.
pub(super) fn stalled(scenario: &Scenario, seed: u64, stall: &impl Display) -> Failure {
    let name = &scenario.name;
    Failure::new(format!("{name}, seed {seed}: {stall}: this is a bug"))
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
    let spread = Spread::of(&values);
    let or_none = |of: fn(&Spread) -> f64| spread.as_ref().map_or(f64::NAN, of);
    Number {
        runs: reports.len() as u64,
        values: values.len() as u64,
        median: or_none(|it| it.median),
        p10: or_none(|it| it.p10),
        p90: or_none(|it| it.p90),
        bound: None,
    }
}
