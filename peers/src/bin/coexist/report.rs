//! Tables in Markdown.

use crate::sender::Sender;

/// The figures of a run.
pub(crate) type Row = Vec<String>;

/// Returns a title and the head of a table.
pub(crate) fn heading(title: &str, columns: &[&str]) -> String {
    let names = columns.join(" | ");
    let lines = "---:|".repeat(columns.len());
    format!("### {title}\n\n| sender | run | {names} |\n|---|---:|{lines}")
}

/// Returns the line of a run.
pub(crate) fn line(sender: &Sender, run: u32, row: &Row) -> String {
    format!("| {sender} | {run} | {} |", row.join(" | "))
}

pub(crate) fn tenths(value: f64) -> String {
    format!("{value:.1}")
}

pub(crate) fn hundredths(value: f64) -> String {
    format!("{value:.2}")
}
