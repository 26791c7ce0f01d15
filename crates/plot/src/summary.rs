//! A chart in words, for readers who cannot see it.

use crate::{Chart, Series, Unit};

/// A line for each series, event and level.
pub(crate) fn text(chart: &Chart) -> String {
    let mut lines = vec![match chart.subtitle.is_empty() {
        true => chart.title.clone(),
        false => format!("{} ({})", chart.title, chart.subtitle),
    }];
    lines.extend(chart.series.iter().map(|one| series(one, chart.y.unit)));
    for marks in &chart.marks {
        let range = match (marks.marks.first(), marks.marks.last()) {
            (Some(first), Some(last)) => {
                let unit = chart.x.unit;
                format!(", from {} to {}", unit.format(first.0), unit.format(last.0))
            }
            _ => String::new(),
        };
        lines.push(format!(
            "{}: {} events{range}",
            marks.name,
            marks.marks.len()
        ));
    }
    for reference in &chart.references {
        lines.push(format!(
            "{}: {}",
            reference.name,
            chart.y.unit.format(reference.value)
        ));
    }
    lines.join("\n")
}

/// Name, number of points, lowest, median, highest and last value.
pub(crate) fn series(series: &Series, unit: Unit) -> String {
    let mut values: Vec<f64> = series.points.iter().map(|point| point.1).collect();
    values.retain(|value| value.is_finite());
    let Some(last) = values.last().copied() else {
        return format!("{}: no values", series.name);
    };
    let count = values.len();
    values.sort_by(f64::total_cmp);
    format!(
        "{}: {count} values, lowest {}, median {}, highest {}, last {}",
        series.name,
        unit.format(values[0]),
        unit.format(values[count / 2]),
        unit.format(values[count - 1]),
        unit.format(last),
    )
}
