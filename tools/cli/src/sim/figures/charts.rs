//! The charts of a document, each from a run of one scenario.

use courser_sim::run::{RunOptions, run};

use super::list::{ChartPart, List, Row};
use super::measure::stalled;
use crate::error::Failure;
use crate::sim::{file, pages};

/// Draws the charts of a document, each into its file.
pub(crate) fn draw(list: &List) -> Result<(), Failure> {
    for row in &list.rows {
        for part in &row.charts {
            draw_chart(list, row, part)?;
        }
    }
    Ok(())
}

fn draw_chart(list: &List, row: &Row, part: &ChartPart) -> Result<(), Failure> {
    let scenarios = list.scenarios(row)?;
    let found = scenarios.iter().find(|(it, _)| it.name == part.scenario);
    let Some((scenario, _)) = found else {
        let (row, name) = (&row.name, &part.scenario);
        let message =
            format!("a chart of row {row} shows '{name}', which is not one of its scenarios");
        return Err(Failure::new(message));
    };
    let seen = run(scenario, part.seed, RunOptions::default());
    let seen = seen.map_err(|stall| stalled(scenario, part.seed, &stall))?;
    let charts = pages::charts_of(&seen);
    let Some(chart) = charts.iter().find(|it| it.title().starts_with(&part.chart)) else {
        let titles: Vec<&str> = charts.iter().map(courser_plot::Chart::title).collect();
        return Err(Failure::new(format!(
            "{} has no chart '{}', it has {}",
            part.scenario,
            part.chart,
            titles.join(", ")
        )));
    };
    file::replace(&list.path(&part.file), &chart.to_svg())
}
