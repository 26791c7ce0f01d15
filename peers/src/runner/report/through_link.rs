//! The table of transfers through a link.

use courser_measure::median;
use peers::PathCounts;
use serde::Serialize;

use super::{Row, Table};
use crate::runner::link::LinkReport;
use crate::runner::measure::Measurement;
use crate::runner::workload::Workload;

/// The figures of runs through a link; medians over the measurements of a row.
#[derive(Debug, Serialize)]
pub(crate) struct LinkRow {
    /// Packets lost at the sending end, as the stack counts them; absent if it does not.
    pub(crate) lost_percent: Option<f64>,
    pub(crate) congestion_events: Option<f64>,
    pub(crate) datagram: Option<f64>,
    /// Packets that the link dropped in the direction of the data.
    pub(crate) dropped_percent: f64,
    pub(crate) queue_median_ms: f64,
    /// Lateness of the emulator: the median and the worst of the 99th percentiles.
    pub(crate) late_p99_ms: f64,
    pub(crate) late_p99_ms_worst: f64,
    pub(crate) proxy_cpu_seconds: f64,
    /// CPU seconds of whole processes.
    pub(crate) client_cpu_seconds: f64,
    pub(crate) server_cpu_seconds: f64,
    /// The share of the cores that other processes took.
    pub(crate) foreign_percent: f64,
}

impl LinkRow {
    /// `None` without a link.
    pub(super) fn of(measurements: &[&Measurement]) -> Option<Self> {
        let through: Vec<(&Measurement, &LinkReport)> = measurements
            .iter()
            .filter_map(|one| Some((*one, one.link.as_ref()?)))
            .collect();
        let figure = |of: &dyn Fn(&Measurement, &LinkReport) -> f64| {
            let all: Vec<f64> = through.iter().map(|(one, link)| of(one, link)).collect();
            median(&all)
        };
        let counted = |of: &dyn Fn(&PathCounts) -> f64| {
            let sent = through.iter().filter_map(|(one, _)| sender(one));
            median(&sent.map(|path| of(&path)).collect::<Vec<_>>())
        };
        let late = through.iter().map(|(_, link)| link.late_p99_ms());
        Some(Self {
            lost_percent: counted(&|path| percent(path.packets_lost, path.packets_sent)),
            congestion_events: counted(&|path| path.congestion_events as f64),
            datagram: counted(&|path| path.datagram.into()),
            dropped_percent: figure(&|one, link| {
                let way = data_way(one, link);
                percent(way.dropped_total, way.packets_in)
            })?,
            queue_median_ms: figure(&|one, link| {
                data_way(one, link).queue_delay.median_seconds * 1e3
            })?,
            late_p99_ms: figure(&|_, link| link.late_p99_ms())?,
            late_p99_ms_worst: late.max_by(f64::total_cmp)?,
            proxy_cpu_seconds: figure(&|_, link| link.cpu_seconds)?,
            client_cpu_seconds: figure(&|one, _| one.client_cpu.total())?,
            server_cpu_seconds: figure(&|one, _| one.server_cpu.total())?,
            foreign_percent: figure(&|one, _| one.disturbance.foreign * 100.0)?,
        })
    }
}

/// Transfers through a link; nothing without one.
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "workload",
        "stack",
        "Mbit/s",
        "min-max",
        "datagram",
        "dropped by link",
        "counted lost",
        "events",
        "queue ms",
        "client CPU s",
        "server CPU s",
        "late ms, worst",
        "others",
        "runs",
    ]);
    for row in rows.iter().filter(|row| row.workload.is_transfer()) {
        let Some(link) = &row.link else { continue };
        let told = |figure: Option<f64>, places: usize| {
            figure.map_or_else(String::new, |figure| format!("{figure:.places$}"))
        };
        table.row(vec![
            row.workload.to_string(),
            format!("{} {}", row.stack, row.version),
            format!("{:.2}", row.speed * 1e3),
            format!("{:.2}-{:.2}", row.slowest * 1e3, row.fastest * 1e3),
            told(link.datagram, 0),
            format!("{:.2} %", link.dropped_percent),
            format!("{} %", told(link.lost_percent, 2)),
            told(link.congestion_events, 0),
            format!("{:.1}", link.queue_median_ms),
            format!("{:.2}", link.client_cpu_seconds),
            format!("{:.2}", link.server_cpu_seconds),
            format!("{:.2}, {:.2}", link.late_p99_ms, link.late_p99_ms_worst),
            format!("{:.0} %", link.foreign_percent),
            row.runs.to_string(),
        ]);
    }
    table.render()
}

/// The counts of the end that sends.
fn sender(one: &Measurement) -> Option<PathCounts> {
    match one.workload {
        Workload::Down => one.server.path,
        _ => one.client.path,
    }
}

/// The direction of the data.
fn data_way<'a>(one: &Measurement, link: &'a LinkReport) -> &'a crate::runner::link::Way {
    match one.workload {
        Workload::Down => &link.back,
        _ => &link.there,
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    // Counts of packets fit into the 53 bits of a double.
    part as f64 / whole as f64 * 100.0
}
