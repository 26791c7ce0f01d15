//! Charts of links.

use std::cmp::Reverse;

use courser_plot::{Chart, Colour, Marks, Series, Unit};
use courser_sim::report::{self, LinkReport, RunReport, seconds};

use super::values::{NANOSECONDS, chart, points};

/// Largest number of queues that are drawn; the tables have all.
const MAX_QUEUES: usize = 4;

/// Returns the link with a rate that carried the most bytes. Its direction depends on the flows.
pub(super) fn bottleneck(run: &RunReport) -> Option<&LinkReport> {
    let limited = run.links.iter().filter(|link| !link.capacity.is_empty());
    limited.max_by_key(|link| link.carried.total())
}

/// Returns the charts of a run's links.
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
    let longest = run.links.iter().map(|link| link.queue_bytes_max).max();
    // A direction that carries only acknowledgements has a queue too, of a packet or two.
    let is_used = |link: &&LinkReport| link.queue_bytes_max > longest.unwrap_or(0) / 20;
    let mut used: Vec<_> = run.links.iter().filter(is_used).collect();
    used.sort_by_key(|link| Reverse(link.queue_bytes_max));
    used.truncate(MAX_QUEUES);
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

/// Returns the times at which a count rose.
fn rises(series: &report::Series) -> Vec<f64> {
    let points = series.points();
    let before = std::iter::once(0).chain(points.iter().map(|point| point.value));
    let grown = points
        .iter()
        .zip(before)
        .filter(|(point, before)| point.value > *before);
    grown.map(|(point, _)| seconds(point.at)).collect()
}
