//! Writes a page with every kind of chart:
//! `cargo run -p courser-plot --example gallery > gallery.html`.

use courser_plot::page::{Page, Section};
use courser_plot::{Axis, Chart, Colour, Marker, Marks, Reference, Series, Unit};

fn main() {
    let section = Section::new("Charts").text("The values are invented.");
    let section = section.chart(window()).chart(round_trips()).chart(share());
    let section = section.chart(sizes()).chart(flows());
    print!("{}", Page::new("Gallery").section(section).to_html());
}

fn window() -> Chart {
    let axis = Axis::new("", Unit::Bytes);
    Chart::new("Congestion window", Axis::time(), axis)
        .subtitle("cubic, 20 Mbit/s, 40 ms, queue of one bandwidth-delay product")
        .series(Series::step("congestion window", saw(1.0)))
        .series(Series::line("bytes in flight", saw(0.93)))
        .series(
            Series::step("threshold", saw(0.7))
                .colour(Colour::Muted)
                .dashed(),
        )
        .marks(Marks::ticks(
            "losses",
            (1..8).map(|cut| f64::from(cut) * 4.0),
        ))
}

fn round_trips() -> Chart {
    let states = [
        (1.2, "Startup"),
        (2.0, "Drain"),
        (2.3, "ProbeBW"),
        (15.0, "ProbeRTT"),
    ];
    Chart::new(
        "Round-trip time",
        Axis::time(),
        Axis::new("", Unit::Seconds),
    )
    .series(Series::dots("latest", noise(4000, 0.08, 0.03)))
    .series(Series::line("smoothed", noise(300, 0.09, 0.004)))
    .series(Series::step(
        "lowest",
        [(0.0, 0.081), (4.0, 0.08), (30.0, 0.08)],
    ))
    .marks(Marks::lines("states", states))
}

fn share() -> Chart {
    Chart::new(
        "Share of the link",
        Axis::time(),
        Axis::new("", Unit::BitsPerSecond),
    )
    .series(Series::stacked("cubic", noise(300, 8e6, 2e6)))
    .series(Series::stacked("bbr", noise(300, 7e6, 1.5e6)))
    .series(Series::stacked("prague <&>", noise(300, 3e6, 1e6)))
    .reference(Reference::new("link rate", 20e6))
}

fn sizes() -> Chart {
    let size = |step: u32| 10_f64.powf(4.0 + f64::from(step) / 8.0);
    let time = |step: u32| 0.1 + f64::from(step * step) / 400.0;
    let x = Axis::new("size", Unit::Bytes).logarithmic();
    let y = Axis::new("completion time", Unit::Seconds).logarithmic();
    let band = (0..30).map(|step| (size(step), time(step) * 0.7, time(step) * 1.5));
    let runs = (0..30).map(|step| (size(step), time(step)));
    Chart::new("Transfers", x, y)
        .series(Series::band("p10 to p90", band))
        .series(Series::markers("median", Marker::Diamond, runs))
}

fn flows() -> Chart {
    let chart = Chart::new(
        "Eight flows",
        Axis::time(),
        Axis::new("rate", Unit::BitsPerSecond),
    );
    (1..=8).fold(chart, |chart, flow| {
        let rate = noise(60, 1e6 * f64::from(flow), 3e5);
        chart.series(Series::line(format!("flow {flow}"), rate))
    })
}

/// Returns a congestion window that is reduced every four seconds, as points of time and size.
fn saw(factor: f64) -> impl Iterator<Item = (f64, f64)> {
    let times = (0..3000).map(|step| f64::from(step) / 100.0);
    times.map(move |at| (at, (120_000.0 + (at % 4.0) * 20_000.0) * factor))
}

/// Returns pseudorandom values around a middle over 30 seconds, the same in every run.
fn noise(count: u32, middle: f64, width: f64) -> impl Iterator<Item = (f64, f64)> {
    let mut state = 7_u32;
    (0..count).map(move |index| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let offset = f64::from(state >> 8) / f64::from(1 << 23) - 1.0;
        (
            f64::from(index) * 30.0 / f64::from(count),
            middle + width * offset,
        )
    })
}
