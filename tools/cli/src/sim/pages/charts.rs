//! The charts of one run.

use courser_plot::{Chart, Colour, Marks};
use courser_sim::report::{RunReport, seconds};

use super::{chart_flow, chart_link};

/// Returns all charts of a run that are not empty; `which` describes the choice of the run.
pub(super) fn all(run: &RunReport, which: &str) -> Vec<Chart> {
    let mut charts = chart_flow::all(run);
    charts.extend(chart_link::all(run));
    charts.retain(|chart| !chart.is_empty());
    let subtitle = match which {
        "" => format!("{}, seed {}", run.scenario, run.seed),
        which => format!("{}, seed {}, {which}", run.scenario, run.seed),
    };
    let finished = charts.into_iter().map(|chart| {
        let chart = chart.subtitle(subtitle.clone());
        match run.marks.is_empty() {
            true => chart,
            false => chart.marks(marks(run)),
        }
    });
    finished.collect()
}

/// Returns marks for the changes of the network during the run.
fn marks(run: &RunReport) -> Marks {
    let marks = run
        .marks
        .iter()
        .map(|mark| (seconds(mark.at), mark.label.clone()));
    Marks::lines("network changes", marks).colour(Colour::Muted)
}
