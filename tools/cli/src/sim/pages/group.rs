//! The runs of one scenario.

use courser_sim::report::{MEASURES, Measure, RunReport};

use super::measure;
use crate::sim::spread::Spread;
use crate::sim::verdict::Judged;

/// The runs of one scenario, from the best to the worst.
pub(super) struct Group<'a> {
    pub(super) name: &'a str,
    /// The file of its own page, if it has one.
    pub(super) file: String,
    pub(super) runs: Vec<&'a RunReport>,
    pub(super) judged: &'a [Judged],
}

impl<'a> Group<'a> {
    /// Sorts the runs of the scenario with this number, which are in the order of their seeds.
    pub(super) fn new(
        number: usize,
        name: &'a str,
        runs: &'a [RunReport],
        judged: &'a [Judged],
    ) -> Self {
        let mut runs: Vec<&RunReport> = runs.iter().collect();
        // Runs that are equally good stay in the order of their seeds.
        runs.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        Self {
            name,
            file: file_name(number, name),
            runs,
            judged,
        }
    }

    /// Returns the run in the middle of the order from best to worst.
    pub(super) fn median(&self) -> &'a RunReport {
        self.runs[(self.runs.len() - 1) / 2]
    }

    /// Returns the last run in the order from best to worst.
    pub(super) fn worst(&self) -> &'a RunReport {
        self.runs[self.runs.len() - 1]
    }

    /// Returns the distribution of a measure over the runs; `None` if no run has it.
    pub(super) fn spread(&self, measure: &Measure) -> Option<Spread> {
        let values = self
            .runs
            .iter()
            .filter_map(|run| (measure.of)(&run.measures));
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        Spread::of(&values)
    }

    /// Returns the seed with the worst value of a measure.
    pub(super) fn worst_seed(&self, measure: &Measure) -> Option<u64> {
        let sign = if measure::is_more_better(measure) {
            -1.0
        } else {
            1.0
        };
        let value = |run: &&&RunReport| (measure.of)(&run.measures).map(|value| value * sign);
        let runs = self.runs.iter().filter(|run| value(run).is_some());
        let cost = |run: &&&RunReport| value(run).unwrap_or(f64::MIN);
        let worst = runs.max_by(|a, b| cost(a).total_cmp(&cost(b)));
        worst.map(|run| run.seed)
    }

    /// Returns the measures that at least one run has.
    pub(super) fn measures(&self) -> impl Iterator<Item = &'static Measure> {
        MEASURES
            .iter()
            .filter(|measure| self.spread(measure).is_some())
    }
}

/// Returns a cost by which runs are sorted, lowest first. Failures weigh most. Transfers of a size
/// and requests are then compared by their time, other scenarios by goodput.
fn cost(run: &RunReport) -> f64 {
    let measures = &run.measures;
    let failures = measures.failures.unwrap_or(0.0) + measures.unfinished.unwrap_or(0.0);
    let value = measures
        .completion_time
        .or(measures.exchange_median)
        .or(measures.goodput.map(|goodput| -goodput))
        .unwrap_or(0.0);
    // The weight of a failure is far above any rate or time.
    failures * 1e18 + value
}

/// Returns a file name from a number and a scenario's name, whose special characters become `-`.
fn file_name(number: usize, scenario: &str) -> String {
    let plain: String = scenario
        .chars()
        .take(MAX_NAME)
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect();
    format!("{number:03}-{plain}.html")
}

/// Largest number of characters of a scenario's name in the name of its file.
const MAX_NAME: usize = 60;
