//! The tables of the report.

use courser_plot::Unit;
use courser_plot::page::{Cell, Table, Tone};
use courser_sim::report::{FlowReport, LinkReport, Measure, RunReport};
use courser_units::to_f64;

use super::group::Group;
use super::measure::{self, display_name, unit};
use crate::sim::verdict::shown;

/// Returns a table with a row for each scenario, and a column for each measure that one of them has.
pub(super) fn overview(groups: &[Group<'_>], is_inside: bool) -> Table {
    let has_any = |measure: &&Measure| groups.iter().any(|group| group.spread(measure).is_some());
    let columns: Vec<&Measure> = measure::main().filter(has_any).collect();
    let fixed = ["scenario", "runs", "bounds"].map(str::to_owned);
    let headings = fixed
        .into_iter()
        .chain(columns.iter().map(|measure| display_name(measure)));
    let table = Table::new("All scenarios", headings);
    groups
        .iter()
        .enumerate()
        .fold(table, |table, (index, group)| {
            let name = Cell::text(group.name);
            let name = match is_inside {
                // The first section is the one with this table.
                true => name.section(index + 2),
                false => name.file(&group.file),
            };
            let runs = Cell::number(group.runs.len().to_string());
            let measures = columns.iter().map(|measure| spread(group, measure));
            table.row([name, runs, result(group)].into_iter().chain(measures))
        })
}

/// Returns a table of the bounds of a scenario and their verdicts.
pub(super) fn bounds(group: &Group<'_>) -> Table {
    let table = Table::new("Bounds", ["result", "bound", "seen"]);
    group.judged.iter().fold(table, |table, judged| {
        let result = match judged.verdict.holds {
            true => Cell::good("met"),
            false => Cell::bad("violated"),
        };
        let seen = shown(judged.verdict.value, judged.bound.measure.unit);
        table.row([
            result,
            Cell::text(judged.bound.to_string()),
            Cell::number(seen),
        ])
    })
}

/// Returns a table with a row for each measure of a scenario.
pub(super) fn measures(group: &Group<'_>) -> Table {
    if group.runs.len() == 1 {
        let table = Table::new("Measures", ["measure", "value"]);
        return group.measures().fold(table, |table, measure| {
            let value = group.spread(measure).map(|spread| spread.median);
            table.row([
                Cell::text(display_name(measure)),
                number(unit(measure), value),
            ])
        });
    }
    let headings = [
        "measure",
        "median",
        "p10",
        "p90",
        "lowest",
        "highest",
        "worst seed",
    ];
    let table = Table::new(format!("Measures over {} runs", group.runs.len()), headings);
    group.measures().fold(table, |table, measure| {
        let Some(spread) = group.spread(measure) else {
            return table;
        };
        let values = [
            spread.median,
            spread.p10,
            spread.p90,
            spread.lowest,
            spread.highest,
        ];
        let values = values.map(|value| number(unit(measure), Some(value)));
        let is_flat = (spread.highest - spread.lowest).abs() < f64::EPSILON;
        let seed = match group.worst_seed(measure) {
            Some(seed) if !is_flat => Cell::number(seed.to_string()),
            _ => nothing(),
        };
        table.row(
            [Cell::text(display_name(measure))]
                .into_iter()
                .chain(values)
                .chain([seed]),
        )
    })
}

/// Returns a table with a row for each run, worst last.
pub(super) fn runs(group: &Group<'_>) -> Table {
    let columns: Vec<_> = group.measures().collect();
    let ends = ["trace digest"].map(str::to_owned);
    let headings = std::iter::once("seed".to_owned())
        .chain(columns.iter().map(|measure| display_name(measure)))
        .chain(ends);
    let table = Table::new("All runs, worst last", headings);
    group.runs.iter().fold(table, |table, run| {
        let values = columns
            .iter()
            .map(|measure| number(unit(measure), (measure.of)(&run.measures)));
        let seed = Cell::number(run.seed.to_string());
        let digest = Cell::text(format!("{:016x}", run.digest)).tone(Tone::Muted);
        table.row([seed].into_iter().chain(values).chain([digest]))
    })
}

/// Returns a table with a row for each flow of a run.
pub(super) fn flows(run: &RunReport, caption: &str) -> Table {
    let headings = [
        "flow",
        "controller",
        "goodput",
        "delivered",
        "packets sent",
        "lost",
        "spurious",
        "retransmitted",
        "window reductions",
        "probe timeouts",
        "end",
    ];
    let table = Table::new(format!("{caption}: flows"), headings);
    run.flows
        .iter()
        .fold(table, |table, flow| table.row(flow_row(flow)))
}

fn flow_row(flow: &FlowReport) -> [Cell; 11] {
    let count = |count: u64| Cell::number(count.to_string());
    [
        Cell::text(&flow.name),
        Cell::text(&flow.controller),
        number(Unit::BitsPerSecond, Some(flow.goodput)),
        bytes(flow.bytes_delivered),
        count(flow.packets_sent),
        count(flow.packets_lost),
        flow.spurious_losses
            .map_or_else(|| number(Unit::Plain, None), count),
        bytes(flow.retransmitted_bytes),
        count(flow.congestion_events),
        count(flow.ptos),
        end(flow),
    ]
}

/// Returns the end of a flow: a failure, its completion time, or the end of the run.
fn end(flow: &FlowReport) -> Cell {
    match (&flow.failure, flow.completion_time) {
        (Some(failure), _) => Cell::bad(failure),
        (None, Some(time)) => Cell::good(format!(
            "complete after {}",
            Unit::Seconds.format(time.as_secs_f64())
        )),
        (None, None) => Cell::text("ran to the end").tone(Tone::Muted),
    }
}

/// Returns a table with a row for each direction of a link.
pub(super) fn links(run: &RunReport, caption: &str) -> Table {
    let headings = [
        "link",
        "packets in",
        "out",
        "marked",
        "longest queue",
        "dropped",
    ];
    let table = Table::new(format!("{caption}: links"), headings);
    run.links
        .iter()
        .fold(table, |table, link| table.row(link_row(link)))
}

fn link_row(link: &LinkReport) -> [Cell; 6] {
    let count = |count: u64| Cell::number(count.to_string());
    let reasons: Vec<String> = link
        .dropped
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    let dropped = match reasons.is_empty() {
        true => Cell::text("none").tone(Tone::Muted),
        false => Cell::text(reasons.join(", ")),
    };
    [
        Cell::text(&link.name),
        count(link.packets_in),
        count(link.packets_out),
        count(link.marked),
        bytes(link.queue_bytes_max),
        dropped,
    ]
}

/// Returns the number of bounds of a scenario that were met or violated.
fn result(group: &Group<'_>) -> Cell {
    let broken = group
        .judged
        .iter()
        .filter(|judged| !judged.verdict.holds)
        .count();
    match (group.judged.len(), broken) {
        (0, _) => Cell::text("none").tone(Tone::Muted),
        (all, 0) => Cell::good(format!("{all} met")),
        (all, broken) => Cell::bad(format!("{broken} of {all} violated")),
    }
}

/// Returns a median with its percentiles below.
fn spread(group: &Group<'_>, measure: &Measure) -> Cell {
    let Some(spread) = group.spread(measure) else {
        return number(unit(measure), None);
    };
    let cell = number(unit(measure), Some(spread.median));
    match range(unit(measure), spread.p10, spread.p90) {
        Some(range) if group.runs.len() > 1 => cell.detail(range),
        _ => cell,
    }
}

/// Returns a range as text: `59.9 to 60.7 ms`; `None` when both ends read the same.
pub(super) fn range(unit: Unit, low: f64, high: f64) -> Option<String> {
    let (low, high) = (unit.format(low), unit.format(high));
    let (number, symbol) = low.rsplit_once(' ').unwrap_or((&low, ""));
    let is_same = high
        .rsplit_once(' ')
        .is_some_and(|(_, other)| other == symbol);
    let low_text = if is_same { number } else { &low };
    (low != high).then(|| format!("{low_text} to {high}"))
}

fn number(unit: Unit, value: Option<f64>) -> Cell {
    match value {
        Some(value) => Cell::number(unit.format(value)),
        None => nothing(),
    }
}

fn bytes(count: u64) -> Cell {
    number(Unit::Bytes, Some(to_f64(count)))
}

fn nothing() -> Cell {
    Cell::number("–").tone(Tone::Muted)
}
