//! Reports as text and as JSON.

use courser_adversary::Plan;
use serde_json::{Value, json};

use super::measure::{Rate, Row};

/// Returns the names, labels and summaries of attacks.
pub(super) fn list(plans: &[Plan]) -> String {
    let rows = plans.iter().map(|plan| {
        let labels = plan.labels.join(",");
        vec![plan.name.to_owned(), labels, plan.summary.to_owned()]
    });
    align(&rows.collect::<Vec<_>>(), 3)
}

/// Returns a table with one line per attack.
pub(super) fn table(rows: &[Row]) -> String {
    let header = HEADER.iter().map(|text| (*text).to_owned()).collect();
    let mut lines = vec![header];
    lines.extend(rows.iter().map(cells));
    // Numbers are aligned to the right, names and codes to the left.
    align(&lines, 2)
}

/// Returns the report as JSON.
pub(super) fn json(rows: &[Row]) -> String {
    let rate =
        |rate: Option<Rate>| rate.map(|it| json!({ "perSecond": it.per_second, "p99": it.p99 }));
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "attack": row.plan,
                "labels": row.labels.split(',').collect::<Vec<_>>(),
                "datagramsSent": row.sent,
                "datagramsDroppedByKernel": row.dropped,
                "rssKib": { "before": row.rss[0], "peak": row.rss[1], "after": row.rss[2] },
                "cpuPerDatagramUs": { "hostile": row.hostile_us, "honest": row.honest_us },
                "honest": { "alone": rate(row.alone), "beside": rate(row.beside) },
                "closes": row.closes,
                "ended": row.has_ended,
                "panics": row.panics,
                "differences": row.differences,
            })
        })
        .collect();
    format!("{:#}\n", Value::Array(rows))
}

/// Checks that every victim survived its attack.
///
/// # Errors
/// Returns the attacks under which a victim ended, panicked or reacted differently than required, or honest clients
/// got no response, one per line.
pub(super) fn verdict(rows: &[Row]) -> Result<(), String> {
    let failures: Vec<String> = rows.iter().flat_map(failures).collect();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(format!("a victim failed\n{}", failures.join("\n"))),
    }
}

fn failures(row: &Row) -> Vec<String> {
    let mut failures = Vec::new();
    if row.has_ended {
        failures.push(format!("{}: the victim ended", row.plan));
    }
    if let Some(first) = row.panics.first() {
        let count = row.panics.len();
        failures.push(format!("{}: {count} panics, first: {first}", row.plan));
    }
    let differences = row.differences.iter();
    failures.extend(differences.map(|line| format!("{}: {line}", row.plan)));
    for (rate, when) in [(row.alone, "without"), (row.beside, "beside")] {
        if rate.is_some_and(|rate| rate.per_second <= 0.0) {
            let plan = row.plan;
            failures.push(format!(
                "{plan}: honest clients got no response {when} the attack"
            ));
        }
    }
    failures
}

const HEADER: [&str; 13] = [
    "attack",
    "labels",
    "sent",
    "dropped",
    "MiB",
    "peak",
    "after",
    "us/hostile",
    "us/honest",
    "req/s",
    "beside",
    "p99 ms",
    "beside",
];

fn cells(row: &Row) -> Vec<String> {
    let mib = |kib: u64| format!("{:.1}", kib as f64 / 1024.0);
    let us = |us: Option<f64>| us.map_or_else(dash, |us| format!("{us:.2}"));
    let rate = |rate: Option<Rate>| rate.map_or_else(dash, |it| format!("{:.0}", it.per_second));
    let p99 = |rate: Option<Rate>| match rate {
        None => dash(),
        Some(rate) if rate.p99.is_infinite() => "none".to_owned(),
        Some(rate) => format!("{:.2}", rate.p99 * 1e3),
    };
    let closes: Vec<String> = row
        .closes
        .iter()
        .map(|(code, count)| format!("{code} x{count}"))
        .collect();
    vec![
        row.plan.to_owned(),
        row.labels.clone(),
        row.sent.to_string(),
        row.dropped.to_string(),
        mib(row.rss[0]),
        mib(row.rss[1]),
        mib(row.rss[2]),
        us(row.hostile_us),
        us(row.honest_us),
        rate(row.alone),
        rate(row.beside),
        p99(row.alone),
        p99(row.beside),
        closes.join(", "),
    ]
}

fn dash() -> String {
    "-".to_owned()
}

/// Aligns the first `left` columns to the left and further ones to the right. The last column of a
/// full row may be long and is not aligned.
fn align(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(String::len).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            let padded = if column < left || column + 1 == columns {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            };
            line.push_str(&padded);
            line.push_str("  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
