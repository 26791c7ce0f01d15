//! Thins long series to their visible points.

use std::collections::HashSet;

/// Keeps the first, lowest, highest and last point of each column of pixels.
///
/// The image is the same as with all points, and no extreme is lost. `points` are pixels sorted by
/// x. A point whose y is NaN is a gap and remains one. With `columns_per_pixel` below 1, columns
/// are wider than a pixel.
pub(crate) fn columns(points: &[(f64, f64)], columns_per_pixel: f64) -> Vec<(f64, f64)> {
    let column = |point: &(f64, f64)| (point.0 * columns_per_pixel).floor();
    let mut out = Vec::new();
    let same =
        |a: &(f64, f64), b: &(f64, f64)| a.1.is_nan() == b.1.is_nan() && column(a) == column(b);
    for group in points.chunk_by(same) {
        keep_extremes(group, &mut out);
    }
    out
}

/// Returns the columns per pixel for about `budget` points of a series over `width` pixels.
pub(crate) fn density(budget: usize, width: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a number of points")]
    let budget = budget as f64;
    (budget / POINTS_PER_COLUMN / width.max(1.0)).clamp(0.01, 1.0)
}

/// Keeps at most about `budget` points: one in each cell of a grid, and the lowest and highest of
/// all. The cells begin at half a pixel and grow until few enough points remain.
pub(crate) fn cells(mut points: Vec<(f64, f64)>, budget: usize) -> Vec<(f64, f64)> {
    let mut size = 0.5;
    while points.len() > budget.max(1) && size < MAX_CELL {
        let extremes = extremes(&points);
        let mut seen = HashSet::new();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "pixels are small, casts saturate"
        )]
        let mut is_new =
            |x: f64, y: f64| seen.insert(((x / size).floor() as i64, (y / size).floor() as i64));
        let mut index = 0;
        points.retain(|point| {
            index += 1;
            extremes.contains(&(index - 1)) || is_new(point.0, point.1)
        });
        size *= 1.5;
    }
    points
}

/// Returns the indices of the lowest and the highest point.
fn extremes(points: &[(f64, f64)]) -> [usize; 2] {
    let compare = |a: &usize, b: &usize| points[*a].1.total_cmp(&points[*b].1);
    let indices = 0..points.len();
    [
        indices.clone().min_by(compare).unwrap_or(0),
        indices.max_by(compare).unwrap_or(0),
    ]
}

/// The largest size of a cell. A few such cells cover any image.
const MAX_CELL: f64 = 4000.0;

const POINTS_PER_COLUMN: f64 = 4.0;

fn keep_extremes(group: &[(f64, f64)], out: &mut Vec<(f64, f64)>) {
    let Some(last) = group.len().checked_sub(1) else {
        return;
    };
    if group[0].1.is_nan() {
        out.push(group[0]);
        return;
    }
    let (mut low, mut high) = (0, 0);
    for (index, point) in group.iter().enumerate() {
        if point.1 < group[low].1 {
            low = index;
        }
        if point.1 > group[high].1 {
            high = index;
        }
    }
    let mut kept = [0, low, high, last];
    kept.sort_unstable();
    let mut previous = None;
    for index in kept {
        if previous != Some(index) {
            out.push(group[index]);
        }
        previous = Some(index);
    }
}

#[cfg(test)]
mod tests;
