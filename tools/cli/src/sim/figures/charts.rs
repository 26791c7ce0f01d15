//! The charts of a document, each from a run of one scenario.

use courser_sim::run::{RunOptions, run};

use super::file::write;
use super::list::{ChartPart, List, Row};
use crate::sim::error::Error;
use crate::sim::pages;

/// Draws the charts of a document again, each into its file.
///
/// # Errors
/// When a chart does not exist or cannot be written.
pub(crate) fn draw(list: &List) -> Result<(), Error> {
    for row in &list.rows {
        for part in &row.charts {
            one(list, row, part)?;
        }
    }
    Ok(())
}

fn one(list: &List, row: &Row, part: &ChartPart) -> Result<(), Error> {
    let scenarios = list.scenarios(row)?;
    let found = scenarios.iter().find(|(it, _)| it.name == part.scenario);
    let Some((scenario, _)) = found else {
        let (row, name) = (&row.name, &part.scenario);
        let message =
            format!("a chart of row {row} is of '{name}', which is not one of its scenarios");
        return Err(Error::Mismatch(message));
    };
    let seen = run(scenario, part.seed, RunOptions::default()).map_err(|stall| Error::Stall {
        path: list.file().to_owned(),
        scenario: scenario.name.clone(),
        seed: part.seed,
        stall: stall.to_string(),
    })?;
    let charts = pages::charts_of(&seen);
    let Some(chart) = charts.iter().find(|it| it.title().starts_with(&part.chart)) else {
        let titles: Vec<&str> = charts.iter().map(courser_plot::Chart::title).collect();
        return Err(Error::Mismatch(format!(
            "{} has no chart '{}', it has {}",
            part.scenario,
            part.chart,
            titles.join(", ")
        )));
    };
    write(&list.path(&part.file), &chart.to_svg())
}
