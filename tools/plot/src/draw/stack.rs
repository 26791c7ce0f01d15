//! Computes the edges of stacked areas.

use crate::{Series, thin};

/// The number of columns to which a series is thinned before series are added: the width of a wide
/// image in pixels. Every edge has the points of all series, so that without thinning the number of points would
/// grow with the square of the number of series.
const COLUMNS: f64 = 1500.0;

/// Returns the upper edge of each stacked series: the sum of the series and all before it.
///
/// All edges have the same x values: those of all series after thinning.
pub(crate) fn edges(series: &[&Series]) -> Vec<Vec<(f64, f64)>> {
    let ends = series
        .iter()
        .flat_map(|one| one.points.first().into_iter().chain(one.points.last()));
    let (low, high) = ends.fold((f64::MAX, f64::MIN), |(low, high), point| {
        (low.min(point.0), high.max(point.0))
    });
    let density = COLUMNS / (high - low).max(f64::MIN_POSITIVE);
    let thinned: Vec<Series> = series
        .iter()
        .map(|one| one.with_points(thin::columns(&one.points, density)))
        .collect();
    sums(&thinned)
}

fn sums(series: &[Series]) -> Vec<Vec<(f64, f64)>> {
    let mut all_x: Vec<f64> = series
        .iter()
        .flat_map(|one| one.points.iter().map(|point| point.0))
        .collect();
    all_x.sort_by(f64::total_cmp);
    all_x.dedup();
    let mut sums = vec![0.0; all_x.len()];
    let mut edges = Vec::new();
    for one in series {
        for (sum, x) in sums.iter_mut().zip(&all_x) {
            // A negative value would make an area overlap its neighbour.
            *sum += one.value_at(*x).unwrap_or(0.0).max(0.0);
        }
        edges.push(all_x.iter().copied().zip(sums.iter().copied()).collect());
    }
    edges
}
