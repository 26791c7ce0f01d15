//! Writes the measured numbers as a Markdown document.

use std::fmt::Write;
use std::path::Path;

use courser_sim::report::{Measure, Unit};
use courser_sim::scenario::Scenario;

use super::data::{Data, Number, Numbers};
use super::list::{List, Row};
use crate::error::Failure;
use crate::sim::file;
use crate::sim::verdict::shown;

/// Writes the document of a list into a file, from the numbers that are in its data files. `command`
/// reproduces all of them.
pub(crate) fn write(list: &List, path: &Path, command: &str) -> Result<(), Failure> {
    let mut parts = Vec::new();
    for row in &list.rows {
        parts.push((row, Data::read(&list.data_of(row))?));
    }
    file::replace(path, &document(list, &parts, command)?)
}

fn document(list: &List, parts: &[(&Row, Data)], command: &str) -> Result<String, Failure> {
    let mut out = format!(
        "# {}\n\n<!-- Made by `{command}`; changes belong into the list. -->\n\n{}\n\n",
        list.title,
        list.about.trim()
    );
    out += "To measure everything again:\n\n";
    let _ = write!(out, "```sh\n{command}\n```\n\n");
    let mut sections = String::new();
    out += "| figure | target | scenarios that reach it |\n|---|---|---|\n";
    for (row, data) in parts {
        let scenarios = list.scenarios(row)?;
        let reached = scenarios
            .iter()
            .filter(|(it, _)| holds(it, data) == Some(true));
        let reached = reached.count();
        let (title, target) = (&row.title, &row.target);
        let all = scenarios.len();
        let missing = scenarios.iter().filter(|(it, _)| holds(it, data).is_none());
        let sum = match (reached == all, missing.count()) {
            (true, _) => format!("all {all}"),
            (false, 0) => format!("**{reached} of {all}**"),
            (false, missing) => format!("**{reached} of {all}**, {missing} not measured"),
        };
        let name = &row.name;
        let _ = writeln!(out, "| [{title}](#{name}) | {target} | {sum} |");
        sections += &section(row, data, &scenarios);
    }
    out.push('\n');
    out += &sections;
    Ok(out)
}

/// Returns true if all bounds of a scenario hold; `None` if it was not measured.
fn holds(scenario: &Scenario, data: &Data) -> Option<bool> {
    let numbers = data.0.get(&scenario.name)?;
    let bounds = numbers.values().filter_map(|number| number.bound.as_ref());
    Some(bounds.into_iter().all(|(_, holds)| *holds))
}

fn section(row: &Row, data: &Data, scenarios: &[(Scenario, u64)]) -> String {
    let mut out = format!(
        "<a id=\"{}\"></a>\n## {}\n\nTarget: {}.\n\n",
        row.name, row.title, row.target
    );
    let columns: Vec<&Measure> = row
        .columns
        .iter()
        .filter_map(|it| Measure::named(it))
        .collect();
    out += "| scenario | runs |";
    for column in &columns {
        let _ = write!(out, " {} |", column.name.replace('_', " "));
    }
    out += " reached |\n|---|---:|";
    out += &"---:|".repeat(columns.len());
    out += "---|\n";
    for (scenario, _) in scenarios {
        out += &line(scenario, data, &columns);
    }
    out.push('\n');
    if !row.text.trim().is_empty() {
        let _ = write!(out, "{}\n\n", row.text.trim());
    }
    for chart in &row.charts {
        let (file, name) = (chart.file.display(), &chart.scenario);
        let title = chart.chart.to_lowercase();
        let _ = write!(out, "![{title} of {name}, seed {}]({file})\n\n", chart.seed);
    }
    out
}

fn line(scenario: &Scenario, data: &Data, columns: &[&Measure]) -> String {
    let name = &scenario.name;
    let Some(numbers) = data.0.get(name) else {
        let nothing = " |".repeat(columns.len());
        return format!("| {name} | 0 |{nothing} not measured |\n");
    };
    let runs = numbers
        .values()
        .map(|number| number.runs)
        .max()
        .unwrap_or(0);
    let mut out = format!("| {name} | {runs} |");
    for column in columns {
        let cell = numbers.get(column.name).map_or_else(String::new, |it| {
            let rtt = scenario.base_rtt().as_secs_f64();
            // Jain's index is written as a number from 0 to 1 in the literature.
            let is_index = column.name == "jain";
            let unit = if is_index { Unit::Ratio } else { column.unit };
            cell(it, unit, rtt)
        });
        let _ = write!(out, " {cell} |");
    }
    let _ = writeln!(out, " {} |", broken(numbers));
    out
}

/// Returns the median, and the tenth and ninetieth percentile where they differ.
fn cell(number: &Number, unit: Unit, rtt: f64) -> String {
    if number.values == 0 {
        return "–".to_owned();
    }
    // The value is shown in the unit of its bound.
    let bound = number.bound.as_ref().map(|(bound, _)| bound.as_str());
    let is_in_rtts = bound.is_some_and(|bound| bound.ends_with("rtt"));
    let text = |value: f64| match unit {
        Unit::Share => shown_share(value),
        Unit::Seconds if is_in_rtts && rtt > 0.0 => format!("{:.2} RTT", value / rtt),
        Unit::Count => shown(Some(value), unit),
        Unit::Ratio => format!("{value:.3}"),
        Unit::Seconds | Unit::BitsPerSecond => shown(Some(value), unit),
    };
    let (median, low, high) = (text(number.median), text(number.p10), text(number.p90));
    let missing = match number.runs - number.values {
        0 => String::new(),
        count => format!(", {count} without"),
    };
    match low == high {
        true => format!("{median}{missing}"),
        false => format!("{median} ({low} – {high}{missing})"),
    }
}

/// Returns a share in percent, with more digits for rare events.
fn shown_share(value: f64) -> String {
    match value > 0.0 && value < 0.01 {
        true => format!("{:.3} %", value * 100.0),
        false => format!("{:.1} %", value * 100.0),
    }
}

/// Returns `yes`, or the bounds that do not hold.
fn broken(numbers: &Numbers) -> String {
    let bounds = numbers.values().filter_map(|number| number.bound.as_ref());
    let broken: Vec<&str> = bounds
        .filter(|(_, holds)| !holds)
        .map(|(bound, _)| bound.as_str())
        .collect();
    match broken.is_empty() {
        true => "yes".to_owned(),
        false => format!("**no**: {}", broken.join(", ").replace('_', " ")),
    }
}
