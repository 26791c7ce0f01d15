//! Converts series of a run into the units of charts.

use std::time::Duration;

use courser_plot::{Axis, Chart, Unit};
use courser_sim::report::{Buckets, Point, RunReport, Series, seconds};
use courser_units::to_f64;

/// A value of a chart at a time in seconds.
pub(super) type Value = (f64, f64);

/// Returns a chart over the whole time of a run.
pub(super) fn chart(run: &RunReport, title: &str, label: &str, unit: Unit) -> Chart {
    let time = Axis::time().from(0.0).to(run.duration.as_secs_f64());
    Chart::new(title, time, Axis::new(label, unit))
}

/// Returns the points of a series, with `scale` times their values.
pub(super) fn points(series: &Series, scale: f64) -> impl Iterator<Item = Value> {
    series.points().iter().map(move |point| value(point, scale))
}

/// Returns the time of a point in seconds, and `scale` times its value.
pub(super) fn value(point: &Point, scale: f64) -> Value {
    (seconds(point.at), to_f64(point.value) * scale)
}

/// Returns bits per second over time.
///
/// Buckets are joined into at most about two hundred: shorter ones would show the
/// rounding to whole packets instead of the rate. A last one that reaches beyond the end of the
/// run is left out because it would look like a drop.
pub(super) fn rates(buckets: &Buckets, duration: Duration) -> Vec<Value> {
    let width = buckets.width().as_secs_f64().max(1e-9);
    let min_length = duration.as_secs_f64() / MAX_PIECES;
    let joined = (1..=MAX_JOINED).find(|joined| to_f64(*joined) * width >= min_length);
    let joined = usize::try_from(joined.unwrap_or(MAX_JOINED)).unwrap_or(1);
    let length = width * to_f64(joined as u64);
    let pieces = (0_u64..).zip(buckets.sums().chunks(joined));
    pieces
        .map(|(index, sums)| {
            let begin = to_f64(index) * length;
            let sum: f64 = sums.iter().map(|sum| to_f64(*sum)).sum();
            (begin + length / 2.0, sum * 8.0 / length)
        })
        .filter(|(middle, _)| middle + length / 2.0 <= duration.as_secs_f64() + width * 0.01)
        .collect()
}

/// Seconds per nanosecond.
pub(super) const NANOSECONDS: f64 = 1e-9;

const MAX_PIECES: f64 = 200.0;
const MAX_JOINED: u64 = 10_000;
