//! What happened in the links.

use courser_plot::{Chart, Colour, Marks, Series, Unit};
use courser_sim::report::{self, LinkReport, RunReport, seconds};

use super::charts::{NANOSECONDS, chart, points};

/// Queues that are drawn; the tables have all.
const MAX_QUEUES: usize = 4;

/// The first link with a rate, which the measures are about.
pub(super) fn bottleneck(run: &RunReport) -> Option<&LinkReport> {
    run.links.iter().find(|link| !link.capacity.is_empty())
}

/// The charts of a run's links.
pub(super) fn all(run: &RunReport) -> Vec<Chart> {
    vec![
        queues(run, "Queue delay", Unit::Seconds, NANOSECONDS, |link| {
            &link.queue_delay
        }),
        queues(run, "Queue length", Unit::Bytes, 1.0, |link| {
            &link.queue_bytes
        }),
    ]
}

fn queues(
    run: &RunReport,
    title: &str,
    unit: Unit,
    scale: f64,
    of: fn(&LinkReport) -> &report::Series,
) -> Chart {
    let used = run.links.iter().filter(|link| link.queue_bytes_max > 0);
    let used: Vec<_> = used.take(MAX_QUEUES).collect();
    let chart = chart(run, title, "", unit);
    let chart = used.iter().enumerate().fold(chart, |chart, (index, link)| {
        let values = points(of(link), scale);
        chart.series(match index {
            0 => Series::area(&link.name, values),
            _ => Series::step(&link.name, values),
        })
    });
    let Some(first) = used.first() else {
        return chart;
    };
    let drops = Marks::ticks(format!("dropped by {}", first.name), rises(&first.drops));
    let marked = Marks::ticks(format!("marked by {}", first.name), rises(&first.marks));
    chart.marks(drops).marks(marked.colour(Colour::Nth(4)))
}

/// The times at which a count has grown.
fn rises(series: &report::Series) -> Vec<f64> {
    let points = series.points();
    let before = std::iter::once(0).chain(points.iter().map(|point| point.value));
    let grown = points
        .iter()
        .zip(before)
        .filter(|(point, before)| point.value > *before);
    grown.map(|(point, _)| seconds(point.at)).collect()
}
