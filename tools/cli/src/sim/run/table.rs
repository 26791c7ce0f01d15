//! Prints the results as a table.

use courser_sim::report::{MEASURES, Measure, quantile};

use super::args::RunArguments;
use super::outcome::Outcome;
use super::replay::replay;
use crate::output::line;
use crate::sim::verdict::{Judged, shown};

/// One row: a measure over all runs.
struct Row {
    name: &'static str,
    /// Median, 10th and 90th percentile.
    values: [String; 3],
    bounds: Vec<String>,
}

const TITLES: [&str; 5] = ["measure", "median", "p10", "p90", "bound"];

pub(super) fn print(arguments: &RunArguments, outcomes: &[Outcome<'_>]) {
    for (index, outcome) in outcomes.iter().enumerate() {
        if index > 0 {
            line("");
        }
        print_one(arguments, outcome);
    }
}

fn print_one(arguments: &RunArguments, outcome: &Outcome<'_>) {
    line(heading(outcome));
    let rows: Vec<Row> = MEASURES
        .iter()
        .filter_map(|measure| row(measure, outcome))
        .collect();
    let name = width(rows.iter().map(|row| row.name), TITLES[0]);
    let column = |at: usize| {
        width(
            rows.iter().map(|row| row.values[at].as_str()),
            TITLES[at + 1],
        )
    };
    let widths = [column(0), column(1), column(2)];
    let [a, b, c] = widths;
    line(format!(
        "  {:name$}  {:>a$}  {:>b$}  {:>c$}  {}",
        TITLES[0], TITLES[1], TITLES[2], TITLES[3], TITLES[4]
    ));
    for row in rows {
        let [median, low, high] = &row.values;
        let bounds = row.bounds.join(", ");
        let text = format!(
            "  {:name$}  {median:>a$}  {low:>b$}  {high:>c$}  {bounds}",
            row.name
        );
        line(text.trim_end());
    }
    for run in outcome.runs {
        for flow in &run.flows {
            if let Some(failure) = &flow.failure {
                line(format!("  seed {}, {}: {failure}", run.seed, flow.name));
            }
        }
    }
    let mut seeds: Vec<u64> = failed(&outcome.judged)
        .filter_map(|it| it.verdict.worst_seed)
        .collect();
    seeds.sort_unstable();
    seeds.dedup();
    for seed in seeds {
        line(format!(
            "  reproduce: {}",
            replay(arguments, outcome.source, seed)
        ));
    }
}

fn heading(outcome: &Outcome<'_>) -> String {
    let scenario = &outcome.source.scenario;
    let seeds = match outcome.runs {
        [only] => format!("seed {}, digest {:016x}", only.seed, only.digest),
        [first, .., last] => format!("seeds {} to {}", first.seed, last.seed),
        [] => "no run".to_owned(),
    };
    if scenario.about.is_empty() {
        return format!("{} ({seeds})", scenario.name);
    }
    format!("{}: {} ({seeds})", scenario.name, scenario.about)
}

fn row(measure: &'static Measure, outcome: &Outcome<'_>) -> Option<Row> {
    let measures = outcome.runs.iter().map(|run| &run.measures);
    let values: Vec<f64> = measures.filter_map(measure.of).collect();
    let judged = outcome
        .judged
        .iter()
        .filter(|it| it.bound.measure.name == measure.name);
    let bounds: Vec<String> = judged.map(bound).collect();
    if values.is_empty() && bounds.is_empty() {
        return None;
    }
    let at = |share| shown(quantile(&values, share), measure.unit);
    Some(Row {
        name: measure.name,
        values: [at(0.5), at(0.1), at(0.9)],
        bounds,
    })
}

fn bound(judged: &Judged) -> String {
    let text = judged.bound.to_string();
    let measure = judged.bound.measure;
    let limit = text.trim_start_matches(measure.name).trim();
    if judged.verdict.holds {
        return format!("{limit} met");
    }
    let seen = shown(judged.verdict.value, measure.unit);
    format!("{limit} FAILED: {seen}")
}

fn failed(judged: &[Judged]) -> impl Iterator<Item = &Judged> {
    judged.iter().filter(|judged| !judged.verdict.holds)
}

fn width<'a>(texts: impl Iterator<Item = &'a str>, title: &'a str) -> usize {
    texts
        .chain([title])
        .map(|it| it.chars().count())
        .max()
        .unwrap_or(0)
}
