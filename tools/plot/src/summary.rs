//! Text summaries of charts, for screen readers.

use crate::escape::shorten;
use crate::{Chart, Series, Unit};

impl Chart {
    /// Returns a text summary of the chart, with one line for each series.
    pub fn to_text(&self) -> String {
        text(self)
    }
}

/// The longest name in a summary, in characters: screen readers read summaries aloud.
const MAX_NAME: usize = 80;
/// The largest number of lines for series, for events and for levels.
const MAX_LINES: usize = 32;

/// Summarizes a chart, with one line for each series, group of events and level.
pub(crate) fn text(chart: &Chart) -> String {
    let mut lines = vec![match chart.subtitle.is_empty() {
        true => name(&chart.title),
        false => format!("{} ({})", name(&chart.title), name(&chart.subtitle)),
    }];
    lines.extend(
        chart
            .series
            .iter()
            .take(MAX_LINES)
            .map(|one| series(one, chart.y.unit)),
    );
    for marks in chart.marks.iter().take(MAX_LINES) {
        let range = match (marks.marks.first(), marks.marks.last()) {
            (Some(only), Some(_)) if marks.marks.len() == 1 => {
                format!(", at {}", chart.x.unit.format(only.0))
            }
            (Some(first), Some(last)) => {
                let unit = chart.x.unit;
                format!(", from {} to {}", unit.format(first.0), unit.format(last.0))
            }
            _ => String::new(),
        };
        let events = events(marks.marks.len());
        lines.push(format!("{}: {events}{range}", name(&marks.name)));
    }
    for reference in chart.references.iter().take(MAX_LINES) {
        lines.push(format!(
            "{}: {}",
            name(&reference.name),
            chart.y.unit.format(reference.value)
        ));
    }
    lines.join("\n")
}

/// Summarizes a series: name, number of values, lowest, median, highest and last value.
pub(crate) fn series(series: &Series, unit: Unit) -> String {
    let mut values: Vec<f64> = series.points.iter().map(|point| point.1).collect();
    values.retain(|value| value.is_finite());
    let Some(last) = values.last().copied() else {
        return format!("{}: no values", name(&series.name));
    };
    let count = values.len();
    values.sort_by(f64::total_cmp);
    format!(
        "{}: {count} values, lowest {}, median {}, highest {}, last {}",
        name(&series.name),
        unit.format(values[0]),
        unit.format(values[count / 2]),
        unit.format(values[count - 1]),
        unit.format(last),
    )
}

fn name(text: &str) -> String {
    shorten(text, MAX_NAME)
}

/// Formats a number of events.
pub(crate) fn events(count: usize) -> String {
    match count {
        1 => "1 event".to_owned(),
        _ => format!("{count} events"),
    }
}
