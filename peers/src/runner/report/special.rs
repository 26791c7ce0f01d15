//! The tables of workloads whose first figure is neither goodput nor operations a second.

use super::{Row, Table, drops, mebibytes};
use crate::runner::workload::Figure;

fn with(rows: &[Row], figure: Figure) -> impl Iterator<Item = &Row> {
    rows.iter()
        .filter(move |row| row.workload.figure() == figure)
}

/// Requests beside a transfer.
pub(super) fn latency(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "workload",
        "stack",
        "p50 us",
        "p99 us",
        "p99 min-max",
        "Gbit/s beside",
        "client s/GB",
        "server s/GB",
        "dropped",
        "runs",
    ]);
    for row in with(rows, Figure::Latency) {
        let told = |figure: Option<f64>, places: usize| {
            figure.map_or_else(String::new, |figure| format!("{figure:.places$}"))
        };
        table.row(vec![
            row.workload.to_string(),
            format!("{} {}", row.stack, row.version),
            told(row.p50_us, 0),
            told(row.p99_us, 0),
            format!("{:.0}-{:.0}", row.slowest, row.fastest),
            told(row.beside_gbits, 2),
            format!("{:.3}", row.client_cost),
            format!("{:.3}", row.server_cost),
            drops(row),
            row.runs.to_string(),
        ]);
    }
    table.render()
}

/// Unreliable datagrams.
pub(super) fn datagrams(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "workload",
        "stack",
        Figure::Datagrams.unit(),
        "min-max",
        "lost",
        "dropped",
        "client us each",
        "server us each",
        "runs",
    ]);
    for row in with(rows, Figure::Datagrams) {
        let lost = row.datagrams_lost.unwrap_or_default() * 100.0;
        table.row(vec![
            row.workload.to_string(),
            format!("{} {}", row.stack, row.version),
            format!("{:.0}", row.speed),
            format!("{:.0}-{:.0}", row.slowest, row.fastest),
            format!("{lost:.2} %"),
            drops(row),
            format!("{:.2}", row.client_cost),
            format!("{:.2}", row.server_cost),
            row.runs.to_string(),
        ]);
    }
    table.render()
}

/// Idle connections.
pub(super) fn idle(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "workload",
        "stack",
        Figure::Memory.unit(),
        "min-max",
        "server MiB",
        "client us each",
        "server us each",
        "runs",
    ]);
    for row in with(rows, Figure::Memory) {
        table.row(vec![
            row.workload.to_string(),
            format!("{} {}", row.stack, row.version),
            format!("{:.2}", row.speed),
            format!("{:.2}-{:.2}", row.slowest, row.fastest),
            mebibytes(row.server_mib),
            format!("{:.1}", row.client_cost),
            format!("{:.1}", row.server_cost),
            row.runs.to_string(),
        ]);
    }
    table.render()
}
