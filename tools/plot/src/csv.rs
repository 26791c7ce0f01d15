//! Writes the values of a chart as a CSV table.

use std::fmt::Write;

use crate::Chart;
use crate::escape::shorten;

impl Chart {
    /// Returns every value of the chart as CSV (RFC 4180), in base units.
    ///
    /// Columns: kind (`series`, `mark`, `reference`), name, x, y, lower value of a band, label.
    pub fn to_csv(&self) -> String {
        table(self, Extent::ALL)
    }

    /// Returns a shortened version of [`to_csv`](Self::to_csv).
    ///
    /// It has at most 64 series, at most `rows` evenly chosen values of each, and shortened names.
    pub fn to_csv_thinned(&self, rows: usize) -> String {
        table(self, Extent::rows(rows))
    }
}

/// The limits on the size of a table.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    rows: usize,
    groups: usize,
    name: usize,
}

impl Extent {
    /// No limits.
    pub(crate) const ALL: Self = Self {
        rows: usize::MAX,
        groups: usize::MAX,
        name: usize::MAX,
    };

    /// Limits a table to `rows` rows of each series. The number of groups and the length of names are
    /// limited as well: the table is part of a page, and an untrusted trace must not decide its size.
    pub(crate) fn rows(rows: usize) -> Self {
        Self {
            rows: rows.max(2),
            groups: 64,
            name: 120,
        }
    }
}

/// Writes the values in long form, one for each row.
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
        for index in chosen(series.points.len(), limit) {
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
        for index in chosen(marks.marks.len(), limit) {
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
    // Writing to a string never fails.
    let _ = write!(out, "{cells}\r\n");
}

/// Returns the indices of the rows to show: all, or `limit` of them from the first to the last.
fn chosen(count: usize, limit: usize) -> impl Iterator<Item = usize> {
    let shown = count.min(limit);
    (0..shown).map(move |index| match count <= limit {
        true => index,
        false => index * (count - 1) / (shown - 1).max(1),
    })
}

/// Returns the shortest text that reads back as the same number, or nothing if the value is not
/// finite.
fn number(value: f64) -> String {
    match value.is_finite() {
        true => format!("{value}"),
        false => String::new(),
    }
}

/// Formats a text cell. It is quoted as RFC 4180 requires, and a spreadsheet never reads it as a formula.
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
