use super::*;

/// Returns values that look random but are the same in every run.
fn noise(count: u32) -> Vec<(f64, f64)> {
    let mut state = 1_u32;
    (0..count)
        .map(|index| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (
                f64::from(index) * 700.0 / f64::from(count),
                f64::from(state >> 16),
            )
        })
        .collect()
}

#[test]
fn every_column_keeps_its_extremes() {
    let points = noise(50_000);
    let thinned = columns(&points, 1.0);
    assert!(thinned.len() <= 4 * 700, "{}", thinned.len());
    for column in 0..700 {
        let inside = |points: &[(f64, f64)]| {
            points
                .iter()
                .filter(|point| point.0.floor() == f64::from(column))
                .fold((f64::MAX, f64::MIN), |(low, high), point| {
                    (low.min(point.1), high.max(point.1))
                })
        };
        assert_eq!(inside(&points), inside(&thinned), "column {column}");
    }
}

#[test]
fn first_and_last_points_are_kept() {
    let points = noise(10_000);
    let thinned = columns(&points, 0.1);
    assert_eq!(thinned.first(), points.first());
    assert_eq!(thinned.last(), points.last());
}

#[test]
fn order_is_kept() {
    let thinned = columns(&noise(10_000), 0.3);
    assert!(thinned.windows(2).all(|pair| pair[0].0 <= pair[1].0));
}

#[test]
fn short_series_are_unchanged() {
    let points = [(0.0, 5.0), (10.0, 7.0), (20.0, 3.0)];
    assert_eq!(columns(&points, 1.0), points);
}

#[test]
fn gaps_remain_gaps() {
    let points = [(0.0, 1.0), (0.1, f64::NAN), (0.2, f64::NAN), (0.3, 2.0)];
    let thinned = columns(&points, 1.0);
    assert_eq!(thinned.len(), 3);
    assert!(thinned[1].1.is_nan());
}

#[test]
fn density_follows_the_budget() {
    assert!((density(2800, 700.0) - 1.0).abs() < 1e-9);
    assert!((density(280, 700.0) - 0.1).abs() < 1e-9);
    assert!((density(1_000_000, 700.0) - 1.0).abs() < 1e-9);
}
