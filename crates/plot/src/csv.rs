//! The table behind a chart.

use std::fmt::Write;

use crate::Chart;
use crate::escape::shorten;

/// How much of a chart a table has.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    rows: usize,
    groups: usize,
    name: usize,
}

impl Extent {
    /// Everything.
    pub(crate) const ALL: Self = Self {
        rows: usize::MAX,
        groups: usize::MAX,
        name: usize::MAX,
    };

    /// So many rows of each series. Other things are bounded as well, for this is the table that
    /// stands in a page, and a stranger's trace must not decide how large that is.
    pub(crate) fn rows(rows: usize) -> Self {
        Self {
            rows: rows.max(2),
            groups: 64,
            name: 120,
        }
    }
}

/// Values in long form.
pub(crate) fn table(chart: &Chart, extent: Extent) -> String {
    let field = |text: &str| field(&shorten(text, extent.name));
    let limit = extent.rows;
    let heading = |axis: &crate::Axis| field(&axis.heading(axis.unit.base_symbol()));
    let mut out = format!(
        "kind,name,{},{},low,label\r\n",
        heading(&chart.x),
        heading(&chart.y)
    );
    for series in chart.series.iter().take(extent.groups) {
        let name = field(&series.name);
        for index in picked(series.points.len(), limit) {
            let (x, y) = series.points[index];
            let low = series
                .lows
                .get(index)
                .copied()
                .map(number)
                .unwrap_or_default();
            row(
                &mut out,
                format_args!("series,{name},{},{},{low},", number(x), number(y)),
            );
        }
    }
    for marks in chart.marks.iter().take(extent.groups) {
        let name = field(&marks.name);
        for index in picked(marks.marks.len(), limit) {
            let (x, label) = &marks.marks[index];
            row(
                &mut out,
                format_args!("mark,{name},{},,,{}", number(*x), field(label)),
            );
        }
    }
    for reference in chart.references.iter().take(extent.groups) {
        let name = field(&reference.name);
        row(
            &mut out,
            format_args!("reference,{name},,{},,", number(reference.value)),
        );
    }
    out
}

fn row(out: &mut String, cells: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{cells}\r\n");
}

/// Which of `count` rows are shown: all, or `limit` of them from the first to the last.
fn picked(count: usize, limit: usize) -> impl Iterator<Item = usize> {
    let shown = count.min(limit);
    (0..shown).map(move |index| match count <= limit {
        true => index,
        false => index * (count - 1) / (shown - 1).max(1),
    })
}

/// Shortest text that reads back as the same number; empty for what is none.
fn number(value: f64) -> String {
    match value.is_finite() {
        true => format!("{value}"),
        false => String::new(),
    }
}

/// A text cell: quoted where RFC 4180 asks for it, never a formula.
fn field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guard = if is_formula { "'" } else { "" };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{guard}{}\"", text.replace('"', "\"\"")),
        false => format!("{guard}{text}"),
    }
}

#[cfg(test)]
mod tests;
