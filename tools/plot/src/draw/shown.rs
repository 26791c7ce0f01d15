//! The parts of a chart that its image shows.

use crate::{Chart, Marks, Reference, Series};

/// The largest number of series that are drawn. More could not be distinguished, and would make a large image.
pub(super) const MAX_SERIES: usize = 24;
/// The largest number of groups of events, and of levels, that are drawn.
const MAX_GROUPS: usize = 8;

/// Returns the series to draw: the first [`MAX_SERIES`].
pub(crate) fn drawn(chart: &Chart) -> impl Iterator<Item = &Series> {
    chart.series.iter().take(MAX_SERIES)
}

/// Returns the groups of events to draw: the first [`MAX_GROUPS`] that have any.
pub(crate) fn drawn_marks(chart: &Chart) -> impl Iterator<Item = &Marks> {
    let has_any = |marks: &&Marks| !marks.marks.is_empty();
    chart.marks.iter().filter(has_any).take(MAX_GROUPS)
}

/// Returns the levels to draw: the first [`MAX_GROUPS`] that are finite.
pub(crate) fn drawn_references(chart: &Chart) -> impl Iterator<Item = &Reference> {
    let is_finite = |reference: &&Reference| reference.value.is_finite();
    chart.references.iter().filter(is_finite).take(MAX_GROUPS)
}
