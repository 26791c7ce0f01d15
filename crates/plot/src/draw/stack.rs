//! Areas that stand on each other.

use crate::Series;

/// The upper edge of each stacked series, in the order given: the sum of it and all before it.
///
/// All edges have the same x: every one that any of the series has.
pub(crate) fn edges(series: &[&Series]) -> Vec<Vec<(f64, f64)>> {
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
            // A negative share would let an area reach into its neighbour's.
            *sum += one.value_at(*x).unwrap_or(0.0).max(0.0);
        }
        edges.push(all_x.iter().copied().zip(sums.iter().copied()).collect());
    }
    edges
}
