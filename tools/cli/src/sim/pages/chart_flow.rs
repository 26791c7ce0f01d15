//! Charts of flows, as measured at the ends of connections.

use courser_plot::{Axis, Chart, Colour, Marker, Marks, Reference, Series, Unit};
use courser_sim::report::{self, FlowReport, RunReport, seconds};
use courser_units::to_f64;

use super::chart_link;
use super::values::{NANOSECONDS, Value, chart, points, rates, value};

/// The round-trip time before the first sample, in nanoseconds (RFC 9002 §6.2.2).
const INITIAL_RTT: u64 = 333_000_000;
/// Largest number of flows in charts with a line for each; the tables have all.
const MAX_FLOWS: usize = 8;
/// Number of round trips in the chart of the beginning of a transfer.
const ROUND_TRIPS: f64 = 12.0;

/// Returns the charts of a run's flows.
pub(super) fn all(run: &RunReport) -> Vec<Chart> {
    let mut charts = match run.flows.as_slice() {
        [flow] => charts_of_one_flow(run, flow),
        flows => charts_of_many_flows(run, &flows[..flows.len().min(MAX_FLOWS)]),
    };
    charts.push(throughput(run));
    if run.flows.len() > 1 {
        charts.push(share(run));
    }
    charts.extend(
        run.flows
            .iter()
            .take(MAX_FLOWS)
            .filter_map(|flow| exchanges(run, flow)),
    );
    charts
}

/// Returns the charts of the only flow of a run.
fn charts_of_one_flow(run: &RunReport, flow: &FlowReport) -> Vec<Chart> {
    vec![
        sequence(run, flow),
        beginning(run, flow),
        window(run, flow),
        round_trips(run, flow),
    ]
}

/// Returns charts with a line for each flow.
fn charts_of_many_flows(run: &RunReport, flows: &[FlowReport]) -> Vec<Chart> {
    let received = with_flows(
        chart(run, "Bytes received", "", Unit::Bytes),
        flows,
        |flow| points(&flow.received, 1.0).collect(),
    );
    let windows = with_flows(
        chart(run, "Congestion windows", "", Unit::Bytes),
        flows,
        |flow| points(&flow.congestion_window, 1.0).collect(),
    );
    let round_trips = chart(run, "Smoothed round-trip time", "", Unit::Seconds);
    let round_trips = with_flows(round_trips, flows, |flow| {
        samples(&flow.smoothed_rtt).collect()
    });
    let losses = flows
        .iter()
        .enumerate()
        .filter(|(_, flow)| !flow.losses.is_empty());
    let windows = losses.fold(windows, |chart, (index, flow)| {
        let name = format!("losses of {}", flow.name);
        chart.marks(Marks::ticks(name, times(flow)).colour(Colour::Nth(index)))
    });
    vec![received, windows, round_trips]
}

/// Adds a line for each flow.
fn with_flows(chart: Chart, flows: &[FlowReport], values: fn(&FlowReport) -> Vec<Value>) -> Chart {
    flows.iter().fold(chart, |chart, flow| {
        chart.series(Series::step(&flow.name, values(flow)))
    })
}

/// Returns round-trip times in seconds, from the first sample on. Before it, the estimate is the
/// initial value of RFC 9002 §6.2.2, which would be the highest value of most charts.
fn samples(series: &report::Series) -> impl Iterator<Item = Value> {
    let assumed = |point: &&report::Point| point.value == INITIAL_RTT;
    let samples = series.points().iter().skip_while(assumed);
    samples.map(|point| value(point, NANOSECONDS))
}

fn sequence(run: &RunReport, flow: &FlowReport) -> Chart {
    with_losses(
        sequence_lines(
            chart(run, "Time and sequence", "stream bytes", Unit::Bytes),
            flow,
        ),
        flow,
    )
}

fn sequence_lines(chart: Chart, flow: &FlowReport) -> Chart {
    chart
        .series(Series::step("sent", points(&flow.sent, 1.0)))
        .series(Series::step("acknowledged", points(&flow.acked, 1.0)))
        .series(Series::step(
            "read by the application",
            points(&flow.received, 1.0),
        ))
}

/// Returns a chart of the first round trips, in which sent and acknowledged bytes are distinct.
fn beginning(run: &RunReport, flow: &FlowReport) -> Chart {
    let begin = seconds(flow.start);
    let round_trip = flow.min_rtt.points().iter().map(|point| point.value).min();
    let length = to_f64(round_trip.unwrap_or(0)) * NANOSECONDS * ROUND_TRIPS;
    let end = (begin + length).min(run.duration.as_secs_f64());
    let axis = Axis::time().from(begin).to(end);
    let title = "Time and sequence of the first round trips";
    let chart = Chart::new(title, axis, Axis::new("stream bytes", Unit::Bytes));
    // The other chart shows a transfer that ends before that as well.
    match length > 0.0 && end < run.duration.as_secs_f64() * 0.9 {
        true => with_losses(sequence_lines(chart, flow), flow),
        false => chart,
    }
}

fn window(run: &RunReport, flow: &FlowReport) -> Chart {
    let title = format!("Congestion window of {}", flow.controller);
    let chart = chart(run, &title, "", Unit::Bytes)
        .series(Series::step(
            "congestion window",
            points(&flow.congestion_window, 1.0),
        ))
        .series(Series::line(
            "bytes in flight",
            points(&flow.bytes_in_flight, 1.0),
        ));
    let chart = match flow.ssthresh.is_empty() {
        true => chart,
        false => chart.series(
            Series::step("slow-start threshold", points(&flow.ssthresh, 1.0))
                .colour(Colour::Muted)
                .dashed(),
        ),
    };
    with_losses(chart, flow)
}

fn round_trips(run: &RunReport, flow: &FlowReport) -> Chart {
    chart(run, "Round-trip time", "", Unit::Seconds)
        .series(Series::dots("latest", samples(&flow.latest_rtt)))
        .series(Series::line("smoothed", samples(&flow.smoothed_rtt)))
        .series(Series::step("lowest", samples(&flow.min_rtt)))
}

/// Returns a chart of the payload of every flow, and of all flows, against the rate of the link.
fn throughput(run: &RunReport) -> Chart {
    let chart = chart(run, "Throughput", "", Unit::BitsPerSecond);
    let chart = run.flows.iter().take(MAX_FLOWS).fold(chart, |chart, flow| {
        let name = format!("payload of {}", flow.name);
        chart.series(Series::line(name, rates(&flow.delivered, run.duration)))
    });
    let Some(link) = chart_link::bottleneck(run) else {
        return chart;
    };
    let carried = Series::line("carried by the link", rates(&link.carried, run.duration));
    with_capacity(chart.series(carried.dashed()), run)
}

/// Returns a chart of the flows' payload on top of each other.
fn share(run: &RunReport) -> Chart {
    let chart = chart(run, "Share of each flow", "payload", Unit::BitsPerSecond);
    let chart = run.flows.iter().fold(chart, |chart, flow| {
        chart.series(Series::stacked(
            &flow.name,
            rates(&flow.delivered, run.duration),
        ))
    });
    with_capacity(chart, run)
}

/// Adds the rate of the busiest link with a rate: a level, or steps where it changes.
fn with_capacity(chart: Chart, run: &RunReport) -> Chart {
    let Some(link) = chart_link::bottleneck(run) else {
        return chart;
    };
    let mut capacity: Vec<Value> = points(&link.capacity, 1.0).collect();
    let Some(last) = capacity.last().copied() else {
        return chart;
    };
    if capacity.iter().all(|one| (one.1 - last.1).abs() < 1.0) {
        return chart.reference(Reference::new("link rate", last.1));
    }
    capacity.push((run.duration.as_secs_f64(), last.1));
    chart.series(Series::step("link rate", capacity).colour(Colour::Muted))
}

/// Returns a chart of the times of requests or pings.
fn exchanges(run: &RunReport, flow: &FlowReport) -> Option<Chart> {
    let name = format!("Requests of {}", flow.name);
    let dots = Series::markers(
        "response time",
        Marker::Circle,
        points(&flow.exchanges, NANOSECONDS),
    );
    (!flow.exchanges.is_empty()).then(|| chart(run, &name, "", Unit::Seconds).series(dots))
}

fn with_losses(chart: Chart, flow: &FlowReport) -> Chart {
    match flow.losses.is_empty() {
        true => chart,
        false => chart.marks(Marks::ticks("losses", times(flow))),
    }
}

fn times(flow: &FlowReport) -> impl Iterator<Item = f64> {
    flow.losses.iter().map(|loss| seconds(loss.at))
}
