//! The results of a run: medians of each stack, and ratios to the baseline.

mod special;
mod through_link;

use std::fmt::Write;

use courser_measure::{Estimate, median};
use peers::settings;
use serde::Serialize;

use super::host;
use super::measure::Measurement;
use super::plan::Plan;
use super::registry::Stack;
use super::workload::{Family, Figure, Workload};
use through_link::LinkRow;

/// The figures of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) machine: String,
    pub(crate) rows: Vec<Row>,
    /// Measurements that stayed disturbed after all retries.
    pub(crate) disturbed: usize,
    pub(crate) measurements: usize,
    /// Thrown away, since the emulator itself lost packets; none of the above.
    pub(crate) discarded: usize,
}

/// One stack under one workload; all figures are medians.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) workload: Workload,
    pub(crate) stack: String,
    pub(crate) version: String,
    pub(crate) runs: usize,
    /// The workload's first figure: Gbit/s, operations a second or another, with the least and the
    /// most of the runs.
    pub(crate) speed: f64,
    pub(crate) slowest: f64,
    pub(crate) fastest: f64,
    /// CPU seconds a GB or microseconds an operation.
    pub(crate) client_cost: f64,
    pub(crate) server_cost: f64,
    pub(crate) client_mib: f64,
    pub(crate) server_mib: f64,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
    /// Bytes a second of the transfer beside requests, in Gbit/s.
    pub(crate) beside_gbits: Option<f64>,
    /// Unreliable datagrams that did not come, of those that were sent.
    pub(crate) datagrams_lost: Option<f64>,
    /// The most datagrams that the kernel dropped at the sockets of both ends in one run.
    pub(crate) most_drops: Option<u64>,
    pub(crate) link: Option<LinkRow>,
    pub(crate) intervals: Intervals,
}

/// The figures of a row with their 95 % intervals.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Intervals {
    pub(crate) speed: Estimate,
    pub(crate) client_cost: Estimate,
    pub(crate) server_cost: Estimate,
}

impl Summary {
    /// Puts the measurements together.
    pub(crate) fn new(plan: &Plan, stacks: &[Stack], measurements: &[Measurement]) -> Self {
        let mut rows = Vec::new();
        for workload in &plan.workloads {
            for stack in stacks.iter().filter(|stack| stack.does(*workload)) {
                rows.extend(Row::of(&of_stack(measurements, *workload, &stack.name)));
            }
        }
        let disturbed = measurements.iter().filter(|one| one.is_disturbed()).count();
        Self {
            machine: host::describe(),
            rows,
            disturbed,
            measurements: measurements.len(),
            discarded: 0,
        }
    }
}

impl Row {
    /// `None` when every measurement failed.
    fn of(measurements: &[&Measurement]) -> Option<Self> {
        let first = measurements.first()?;
        let all = |figure: &dyn Fn(&Measurement) -> f64| -> Vec<f64> {
            measurements.iter().map(|one| figure(one)).collect()
        };
        let latencies: Vec<_> = measurements
            .iter()
            .filter_map(|one| one.client.latency)
            .collect();
        let p50: Vec<f64> = latencies.iter().map(|latency| latency.p50_us).collect();
        let p99: Vec<f64> = latencies.iter().map(|latency| latency.p99_us).collect();
        let speeds = all(&Measurement::figure);
        let client_costs = all(&|one| one.cost(one.client_cpu));
        let server_costs = all(&|one| one.cost(one.server_cpu));
        let is_beside = first.workload.figure() == Figure::Latency;
        let beside = all(&|one| one.work() * 8.0 / one.client.seconds);
        let lost: Vec<f64> = measurements
            .iter()
            .filter_map(|one| one.datagrams_lost())
            .collect();
        Some(Self {
            workload: first.workload,
            stack: first.stack.clone(),
            version: match first.client.version.as_str() {
                "" => first.server.version.clone(),
                version => version.to_owned(),
            },
            runs: measurements.len(),
            speed: median(&speeds)?,
            slowest: speeds.iter().copied().min_by(f64::total_cmp)?,
            fastest: speeds.iter().copied().max_by(f64::total_cmp)?,
            client_cost: median(&client_costs)?,
            server_cost: median(&server_costs)?,
            client_mib: median(&all(&|one| one.client.peak_rss_kib as f64 / 1024.0))?,
            server_mib: median(&all(&|one| one.server.peak_rss_kib as f64 / 1024.0))?,
            p50_us: median(&p50),
            p99_us: median(&p99),
            beside_gbits: median(&beside).filter(|_| is_beside),
            datagrams_lost: median(&lost),
            most_drops: measurements
                .iter()
                .filter_map(|one| one.socket_drops())
                .max(),
            link: LinkRow::of(measurements),
            intervals: Intervals {
                speed: Estimate::of(&speeds)?,
                client_cost: Estimate::of(&client_costs)?,
                server_cost: Estimate::of(&server_costs)?,
            },
        })
    }
}

/// A stack against the baseline: medians of the ratios within pairs.
#[derive(Debug, Serialize)]
pub(crate) struct Ratio {
    pub(crate) workload: Workload,
    pub(crate) stack: String,
    pub(crate) baseline: String,
    /// Pairs in which both came to their end.
    pub(crate) pairs: usize,
    /// Ratio of the workload's first figure. Above 1: faster than the baseline, or more memory, or later.
    pub(crate) speed: Estimate,
    /// Below 1: cheaper than the baseline.
    pub(crate) client_cost: Estimate,
    pub(crate) server_cost: Estimate,
}

impl Ratio {
    /// Every stack but the baseline, workload by workload.
    pub(crate) fn all(plan: &Plan, stacks: &[Stack], measurements: &[Measurement]) -> Vec<Self> {
        let mut ratios = Vec::new();
        for workload in &plan.workloads {
            let name = match workload.family() {
                Family::Http | Family::Files | Family::Proxy => &plan.http_baseline,
                Family::Perf => &plan.baseline,
            };
            let baseline = of_stack(measurements, *workload, name);
            for stack in stacks.iter().filter(|stack| stack.name != *name) {
                ratios.extend(Self::of(
                    &of_stack(measurements, *workload, &stack.name),
                    &baseline,
                ));
            }
        }
        ratios
    }

    fn of(measurements: &[&Measurement], baseline: &[&Measurement]) -> Option<Self> {
        let pairs: Vec<(&Measurement, &Measurement)> = measurements
            .iter()
            .filter_map(|one| Some((*one, *baseline.iter().find(|other| other.pair == one.pair)?)))
            .collect();
        let (first, other) = pairs.first()?;
        let estimate = |figure: &dyn Fn(&Measurement) -> f64| {
            let ratios: Vec<f64> = pairs
                .iter()
                .map(|(one, other)| figure(one) / figure(other))
                .collect();
            Estimate::of(&ratios)
        };
        Some(Self {
            workload: first.workload,
            stack: first.stack.clone(),
            baseline: other.stack.clone(),
            pairs: pairs.len(),
            speed: estimate(&Measurement::figure)?,
            client_cost: estimate(&|one| one.cost(one.client_cpu))?,
            server_cost: estimate(&|one| one.cost(one.server_cpu))?,
        })
    }
}

fn of_stack<'a>(
    measurements: &'a [Measurement],
    workload: Workload,
    stack: &str,
) -> Vec<&'a Measurement> {
    let of_both = |one: &&Measurement| one.workload == workload && one.stack == stack;
    measurements.iter().filter(of_both).collect()
}

/// The report for a terminal; its tables are Markdown.
pub(crate) fn render(plan: &Plan, summary: &Summary, ratios: &[Ratio]) -> String {
    let mut text = head(plan, summary);
    text.push_str(&transfer_table(&summary.rows));
    text.push_str(&through_link::table(&summary.rows));
    text.push_str(&operation_table(&summary.rows));
    text.push_str(&special::latency(&summary.rows));
    text.push_str(&special::datagrams(&summary.rows));
    text.push_str(&special::idle(&summary.rows));
    for heading in ["speed [95 %]", "p99 [95 %]", "memory [95 %]"] {
        text.push_str(&ratio_table(ratios, heading));
    }
    text
}

fn head(plan: &Plan, summary: &Summary) -> String {
    let mut text = format!(
        "{}; server on core {}, client on core {}, {}.\n\
         {} GB a transfer, {} handshakes, {} requests; {} pairs; medians.\n\
         TLS_AES_128_GCM_SHA256, X25519, P-256; CUBIC; {}.\n",
        summary.machine,
        plan.server_core,
        plan.client_core,
        if plan.veth {
            "a veth pair between two namespaces"
        } else {
            "loopback"
        },
        plan.gigabytes,
        plan.handshakes,
        plan.requests,
        plan.pairs,
        transport(plan),
    );
    // Writing to a `String` cannot fail, here and below.
    if plan.has(Family::Files) {
        let (size, count) = (plan.file_size, plan.files);
        let _ = writeln!(text, "Files of {size} bytes, {count} of them in walks.");
    }
    if plan.has(Family::Proxy) {
        let _ = writeln!(
            text,
            "Proxied responses of {} bytes; the origin on the core of the client.",
            plan.file_size
        );
    }
    if let Some(link) = &plan.link {
        let _ = writeln!(
            text,
            "Through {link}; the same chance for all stacks of a pair."
        );
    }
    if summary.discarded > 0 {
        let _ = writeln!(
            text,
            "{} measurements were discarded: the emulator itself lost packets.",
            summary.discarded
        );
    }
    if summary.disturbed > 0 {
        let _ = writeln!(
            text,
            "{} of {} measurements were disturbed by other load.",
            summary.disturbed, summary.measurements
        );
    }
    text
}

fn transport(plan: &Plan) -> String {
    if plan.transport.own_settings {
        return "each stack's own datagram sizes and windows".to_owned();
    }
    format!(
        "UDP payload {}; windows {} and {} MiB",
        plan.transport.datagram,
        settings::STREAM_WINDOW >> 20,
        settings::CONNECTION_WINDOW >> 20,
    )
}

fn transfer_table(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "workload",
        "stack",
        "Gbit/s",
        "min-max",
        "client s/GB",
        "server s/GB",
        "client MiB",
        "server MiB",
        "dropped",
        "runs",
    ]);
    let direct = |row: &&Row| row.workload.is_transfer() && row.link.is_none();
    for row in rows.iter().filter(direct) {
        table.row(vec![
            row.workload.to_string(),
            format!("{} {}", row.stack, row.version),
            format!("{:.2}", row.speed),
            format!("{:.2}-{:.2}", row.slowest, row.fastest),
            format!("{:.3}", row.client_cost),
            format!("{:.3}", row.server_cost),
            mebibytes(row.client_mib),
            mebibytes(row.server_mib),
            drops(row),
            row.runs.to_string(),
        ]);
    }
    table.render()
}

/// The most of a run; nothing where an end does not tell, or has no sockets that drop.
fn drops(row: &Row) -> String {
    row.most_drops
        .map_or_else(String::new, |most| most.to_string())
}

/// Nothing where a program does not tell.
fn mebibytes(size: f64) -> String {
    if size > 0.0 {
        format!("{size:.1}")
    } else {
        String::new()
    }
}

fn operation_table(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "workload",
        "stack",
        "per second",
        "min-max",
        "p50 us",
        "p99 us",
        "client us each",
        "server us each",
        "client MiB",
        "server MiB",
        "runs",
    ]);
    let is_counted = |row: &&Row| row.workload.figure() == Figure::Rate;
    for row in rows.iter().filter(is_counted) {
        table.row(vec![
            row.workload.to_string(),
            format!("{} {}", row.stack, row.version),
            format!("{:.0}", row.speed),
            format!("{:.0}-{:.0}", row.slowest, row.fastest),
            row.p50_us.map_or_else(String::new, |us| format!("{us:.0}")),
            row.p99_us.map_or_else(String::new, |us| format!("{us:.0}")),
            format!("{:.1}", row.client_cost),
            format!("{:.1}", row.server_cost),
            mebibytes(row.client_mib),
            mebibytes(row.server_mib),
            row.runs.to_string(),
        ]);
    }
    table.render()
}

/// The ratios of workloads whose first figure has this heading.
fn ratio_table(ratios: &[Ratio], heading: &str) -> String {
    let mut table = Table::new(&[
        "workload",
        "stack to baseline",
        heading,
        "client CPU [95 %]",
        "server CPU [95 %]",
        "pairs",
    ]);
    let has_heading = |ratio: &&Ratio| ratio.workload.figure().ratio() == heading;
    for ratio in ratios.iter().filter(has_heading) {
        table.row(vec![
            ratio.workload.to_string(),
            format!("{} to {}", ratio.stack, ratio.baseline),
            interval(ratio.speed),
            interval(ratio.client_cost),
            interval(ratio.server_cost),
            ratio.pairs.to_string(),
        ]);
    }
    table.render()
}

fn interval(estimate: Estimate) -> String {
    format!(
        "{:.2} [{:.2}, {:.2}]",
        estimate.median, estimate.low, estimate.high
    )
}

/// A Markdown table whose columns are also straight in a terminal.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(head: &[&str]) -> Self {
        Self {
            rows: vec![head.iter().map(|&cell| cell.to_owned()).collect()],
        }
    }

    fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Nothing when there is only the head.
    fn render(&self) -> String {
        let [head, body @ ..] = self.rows.as_slice() else {
            return String::new();
        };
        if body.is_empty() {
            return String::new();
        }
        let width = |column: usize| {
            self.rows
                .iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        let mut text = String::from("\n");
        text.push_str(&line(head, &widths));
        // The first two columns are words, the others figures.
        let rule = widths
            .iter()
            .enumerate()
            .map(|(column, width)| match column {
                0 | 1 => format!("{:-<1$}", "", width + 2),
                _ => format!("{:-<1$}:", "", width + 1),
            });
        let _ = writeln!(text, "|{}|", rule.collect::<Vec<_>>().join("|"));
        for row in body {
            text.push_str(&line(row, &widths));
        }
        text
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let cells = cells
        .iter()
        .zip(widths)
        .enumerate()
        .map(|(column, (cell, width))| match column {
            0 | 1 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests;
