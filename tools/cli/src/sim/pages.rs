//! Reports of simulated runs: HTML pages with tables and charts.

mod chart_flow;
mod chart_link;
mod charts;
mod group;
mod measure;
mod tables;
mod values;

use std::fs;
use std::io;
use std::path::Path;

use courser_plot::Chart;
use courser_plot::page::{Page, Section};
use courser_sim::report::RunReport;

use self::group::Group;
use super::run::Outcome;
use crate::error::Failure;

/// Largest number of scenarios on one page: a page with more charts would be slow to open.
const MAX_SCENARIOS_INSIDE: usize = 4;

/// Writes `index.html`, and a page for each scenario where there are many, into a directory, which is created if
/// needed.
pub(super) fn write(directory: &Path, outcomes: &[Outcome<'_>]) -> Result<(), Failure> {
    let groups = (1..).zip(outcomes).map(|(number, outcome)| {
        let name = &outcome.source.scenario.name;
        Group::new(number, name, outcome.runs, &outcome.judged)
    });
    write_pages(directory, &groups.collect::<Vec<_>>())
}

fn write_pages(directory: &Path, groups: &[Group<'_>]) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
    for (name, html) in pages(groups) {
        let path = directory.join(name);
        fs::write(&path, html).map_err(|error| cannot_write(&path, &error))?;
    }
    Ok(())
}

/// Returns the charts of one run.
pub(super) fn charts_of(run: &RunReport) -> Vec<Chart> {
    charts::all(run, "")
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::new(format!(
        "cannot write the report to {path}: {error}; choose another directory with --report"
    ))
}

/// Returns all pages with their file names, the index first.
fn pages(groups: &[Group<'_>]) -> Vec<(String, String)> {
    let is_inside = groups.len() <= MAX_SCENARIOS_INSIDE;
    let mut index = Page::new("Simulated runs").line(overview(groups));
    let mut section = Section::new("Scenarios").table(tables::overview(groups, is_inside));
    if groups.iter().any(|group| group.runs.len() > 1) {
        section = section.text(
            "The large numbers are medians over the seeds of a scenario, with the 10th and the 90th \
             percentile below. Scenario and seed reproduce a run exactly.",
        );
    }
    index = index.section(section);
    let mut others = Vec::new();
    for group in groups {
        if is_inside {
            index = index.section(scenario(group, group.name.to_owned()));
        } else {
            let title = format!("Simulated runs of {}", group.name);
            let page = Page::new(title).line(scenario_line(group));
            let page = page.section(scenario(group, "Results".to_owned()));
            others.push((group.file.clone(), page.to_html()));
        }
    }
    let mut pages = vec![("index.html".to_owned(), index.to_html())];
    pages.append(&mut others);
    pages
}

/// Returns the tables and charts of one scenario.
fn scenario(group: &Group<'_>, heading: String) -> Section {
    let mut section = Section::new(heading);
    if !group.judged.is_empty() {
        section = section.table(tables::bounds(group));
    }
    section = section.table(tables::measures(group));
    let (median, worst) = (group.median(), group.worst());
    let is_same = std::ptr::eq(median, worst);
    section = of_run(section, median, if is_same { "" } else { "the median run" });
    if !is_same {
        section = of_run(section, worst, "the worst run");
    }
    match group.runs.len() {
        1 => section,
        _ => section.table(tables::runs(group)),
    }
}

/// Adds the tables and charts of one run.
fn of_run(section: Section, run: &RunReport, which: &str) -> Section {
    let words = match which {
        "" => format!("Seed {}", run.seed),
        which => format!("Seed {}, {which}", run.seed),
    };
    let section = section
        .table(tables::flows(run, &words))
        .table(tables::links(run, &words));
    charts::all(run, which)
        .into_iter()
        .fold(section, Section::chart)
}

fn overview(groups: &[Group<'_>]) -> String {
    let runs = groups.iter().map(|group| group.runs.len()).sum();
    let judged = || groups.iter().flat_map(|group| group.judged);
    let kept = judged().filter(|judged| judged.verdict.holds).count();
    let bounds = match judged().count() {
        0 => "no bounds".to_owned(),
        1 if kept == 1 => "the bound is met".to_owned(),
        1 => "the bound is violated".to_owned(),
        all if all == kept => format!("all {all} bounds met"),
        all => format!("{} of {all} bounds violated", all - kept),
    };
    format!(
        "{}, {}, {bounds}.",
        count(groups.len(), "scenario"),
        count(runs, "run")
    )
}

fn scenario_line(group: &Group<'_>) -> String {
    overview(std::slice::from_ref(group))
}

/// Returns a count with its noun: `1 run`, `2 runs`.
fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests;
