//! The charts of one run.

use std::time::Duration;

use courser_plot::{Axis, Chart, Colour, Marks, Unit};
use courser_sim::report::{Buckets, Point, RunReport, Series, seconds};

use super::{chart_flow, chart_link};

/// A value of a chart at a time in seconds.
pub(super) type Value = (f64, f64);

/// All charts of a run that have something to show; `which` tells how the run was chosen.
pub(super) fn all(run: &RunReport, which: &str) -> Vec<Chart> {
    let mut charts = chart_flow::all(run);
    charts.extend(chart_link::all(run));
    charts.retain(|chart| !chart.is_empty());
    let subtitle = match which {
        "" => format!("{}, seed {}", run.scenario, run.seed),
        which => format!("{}, seed {}, {which}", run.scenario, run.seed),
    };
    let finished = charts.into_iter().map(|chart| {
        let chart = chart.subtitle(subtitle.clone());
        match run.marks.is_empty() {
            true => chart,
            false => chart.marks(marks(run)),
        }
    });
    finished.collect()
}

/// A chart over the whole time of a run.
pub(super) fn chart(run: &RunReport, title: &str, label: &str, unit: Unit) -> Chart {
    let time = Axis::time().from(0.0).to(run.duration.as_secs_f64());
    Chart::new(title, time, Axis::new(label, unit))
}

/// A series in the unit of a chart: `scale` times its values.
pub(super) fn points(series: &Series, scale: f64) -> impl Iterator<Item = Value> {
    series.points().iter().map(move |point| value(point, scale))
}

/// A point in the unit of a chart.
pub(super) fn value(point: &Point, scale: f64) -> Value {
    (seconds(point.at), float(point.value) * scale)
}

/// Bits per second over time.
///
/// Pieces are joined until there are at most some two hundred: shorter ones would show the
/// rounding to whole packets instead of the rate. A last piece that reaches beyond the end of the
/// run is left out, it would look like a drop.
pub(super) fn rates(buckets: &Buckets, duration: Duration) -> Vec<Value> {
    let width = buckets.width().as_secs_f64().max(1e-9);
    let wanted = duration.as_secs_f64() / MAX_PIECES;
    let joined = (1..=MAX_JOINED).find(|joined| float(*joined) * width >= wanted);
    let joined = usize::try_from(joined.unwrap_or(MAX_JOINED)).unwrap_or(1);
    let length = width * float(joined as u64);
    let pieces = (0_u64..).zip(buckets.sums().chunks(joined));
    pieces
        .map(|(index, sums)| {
            let begin = float(index) * length;
            let sum: f64 = sums.iter().map(|sum| float(*sum)).sum();
            (begin + length / 2.0, sum * 8.0 / length)
        })
        .filter(|(middle, _)| middle + length / 2.0 <= duration.as_secs_f64() + width * 0.01)
        .collect()
}

/// What was done to the world on the way.
fn marks(run: &RunReport) -> Marks {
    let marks = run
        .marks
        .iter()
        .map(|mark| (seconds(mark.at), mark.label.clone()));
    Marks::lines("network changes", marks).colour(Colour::Muted)
}

/// A count as a number for a chart.
#[expect(
    clippy::cast_precision_loss,
    reason = "charts have a thousand pixels, not fifteen digits"
)]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

/// Nanoseconds as seconds.
pub(super) const NANOSECONDS: f64 = 1e-9;

const MAX_PIECES: f64 = 200.0;
const MAX_JOINED: u64 = 10_000;
