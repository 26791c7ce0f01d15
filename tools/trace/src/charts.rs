//! Draws the charts of a trace.

use std::io::BufRead;

use courser_plot::page::{Cell, Page, Section, Table};
use courser_plot::{Axis, Chart, Colour, Grid, Marker, Marks, Series as Line, Unit};
use courser_units::seconds;

use crate::explain::{Explanation, sentences};
use crate::qlog::{About, Point, Reader, Samples, Series, Summary};
use crate::text;

/// A chart of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceChart {
    /// Packets sent, acknowledged and lost.
    Packets,
    /// Congestion window and bytes in flight.
    Window,
    /// Latest, smoothed and shortest round-trip times.
    Rtt,
    /// Send and receive rates.
    Throughput,
}

/// A trace that was read completely, and from which charts are drawn.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The name of the trace, for titles.
    pub name: String,
    /// The header of the trace.
    pub about: About,
    /// The series of the trace.
    pub series: Series,
    /// The summary of the trace.
    pub summary: Summary,
    /// The time over which rates are averaged, in seconds.
    rate_width: f64,
}

/// Returns the time over which rates are averaged, in seconds: 200 points over the trace, but at least a
/// millisecond.
fn rate_width(duration: f64) -> f64 {
    (duration / 200.0).max(1e-3)
}

impl Trace {
    /// Reads a trace.
    ///
    /// `open` is called twice, because the time over which rates are averaged depends on the duration of
    /// the trace, which is known at its end.
    ///
    /// # Errors
    /// Returns the error of `open`.
    pub fn read<R: BufRead, E>(
        name: String,
        open: impl Fn() -> Result<Reader<R>, E>,
    ) -> Result<Self, E> {
        let rate_width = rate_width(Summary::of(&mut open()?).duration);
        let mut reader = open()?;
        let (series, summary) = Series::of(&mut reader, rate_width);
        let about = reader.about().clone();
        Ok(Self {
            name,
            about,
            series,
            summary,
            rate_width,
        })
    }

    /// Draws one chart, or all of them in one image, as SVG.
    pub fn image(&self, which: Option<TraceChart>) -> String {
        let charts = self.charts(which);
        if let [chart] = &charts[..] {
            return chart.to_svg();
        }
        let grid = Grid::new(self.title(), 2);
        charts.into_iter().fold(grid, Grid::chart).to_svg()
    }

    /// Draws one chart, or all of them, and the summary below, as an HTML page.
    pub fn page(&self, which: Option<TraceChart>) -> String {
        let page = Page::new(self.title()).line(text::origin(&self.about));
        self.with_charts(page, which).to_html()
    }

    /// Draws a self-contained HTML page with an explanation and all charts below it.
    pub fn report(&self, explanation: &Explanation) -> String {
        let lines = sentences(explanation);
        let headings = [
            "share",
            "time",
            "cause",
            "fact",
            "remedy",
            "lines of the trace",
        ];
        let table = Table::new("Causes, each moment counted once", headings);
        let all = explanation.findings.iter().chain(&explanation.notes);
        let table = all.fold(table, |table, finding| {
            let (share, time) = match finding.seconds {
                0.0 => (String::new(), String::new()),
                time => (finding.share_text(), seconds(time)),
            };
            let lines = finding.evidence.iter().map(|it| {
                let (from, to) = (it.from.line, it.to.line);
                format!("{from} to {to}")
            });
            table.row([
                Cell::number(share),
                Cell::number(time),
                Cell::text(finding.cause.name()),
                Cell::text(&finding.text),
                Cell::text(&finding.advice),
                Cell::text(lines.collect::<Vec<_>>().join(", ")),
            ])
        });
        let section = Section::new("What limited the transfer").table(table);
        let page = Page::new(self.title()).line(text::origin(&self.about));
        let page = page.line(lines.first().cloned().unwrap_or_default());
        self.with_charts(page.section(section), None).to_html()
    }

    fn with_charts(&self, page: Page, which: Option<TraceChart>) -> Page {
        let rows = text::rows(&self.summary);
        let table = rows.into_iter().fold(
            Table::new("Connection", ["measure", "value"]),
            |table, (name, value)| table.row([Cell::text(name), Cell::text(value)]),
        );
        let section = Section::new("Charts");
        let section = self.charts(which).into_iter().fold(section, Section::chart);
        page.section(section)
            .section(Section::new("Summary").table(table))
    }

    fn title(&self) -> String {
        self.summary
            .title
            .clone()
            .unwrap_or_else(|| self.name.clone())
    }

    fn charts(&self, which: Option<TraceChart>) -> Vec<Chart> {
        match which {
            Some(TraceChart::Packets) => vec![self.time_sequence()],
            Some(TraceChart::Window) => vec![self.window()],
            Some(TraceChart::Rtt) => vec![self.rtt()],
            Some(TraceChart::Throughput) => vec![self.throughput()],
            None => vec![
                self.time_sequence(),
                self.window(),
                self.rtt(),
                self.throughput(),
            ],
        }
    }

    fn time_sequence(&self) -> Chart {
        let series = &self.series;
        let axis = Axis::new("bytes sent", Unit::Bytes);
        let chart = Chart::new("Packets", Axis::time(), axis);
        if series.sent.as_slice().len() < series.received.as_slice().len() / 2 {
            // A receiver sends little: the chart shows what it received.
            return Chart::new(
                "Packets",
                Axis::time(),
                Axis::new("bytes received", Unit::Bytes),
            )
            .subtitle(self.name.clone())
            .series(Line::dots("received", points(&series.received)));
        }
        chart
            .subtitle(self.name.clone())
            .series(Line::dots("sent", points(&series.sent)))
            .series(Line::dots("acknowledged", points(&series.acked)).colour(Colour::Good))
            .series(Line::markers("lost", Marker::Cross, points(&series.lost)).colour(Colour::Bad))
    }

    fn window(&self) -> Chart {
        let series = &self.series;
        let axis = Axis::new("bytes", Unit::Bytes);
        let mut chart = Chart::new("Congestion window", Axis::time(), axis)
            .subtitle(self.name.clone())
            .series(Line::area("in flight", points(&series.bytes_in_flight)))
            .series(Line::step("window", points(&series.congestion_window)));
        if !series.ssthresh.as_slice().is_empty() {
            let line = Line::step("slow-start threshold", points(&series.ssthresh));
            chart = chart.series(line.dashed());
        }
        self.with_losses(chart)
    }

    fn rtt(&self) -> Chart {
        let series = &self.series;
        Chart::new(
            "Round-trip time",
            Axis::time(),
            Axis::new("rtt", Unit::Seconds),
        )
        .subtitle(self.name.clone())
        .series(Line::dots("latest", points(&series.latest_rtt)))
        .series(Line::line("smoothed", points(&series.smoothed_rtt)))
        .series(Line::step("shortest", points(&series.min_rtt)).dashed())
    }

    fn throughput(&self) -> Chart {
        let series = &self.series;
        let over = seconds(self.rate_width);
        let axis = Axis::new("rate", Unit::BitsPerSecond);
        let mut chart = Chart::new("Throughput", Axis::time(), axis)
            .subtitle(format!("{}, means over {over}", self.name))
            .series(Line::line("sent", points(&series.send_rate)))
            .series(Line::line("received", points(&series.receive_rate)));
        if !series.pacing_rate.as_slice().is_empty() {
            let line = Line::step("pacing rate", points(&series.pacing_rate));
            chart = chart.series(line.dashed());
        }
        self.with_losses(chart)
    }

    fn with_losses(&self, chart: Chart) -> Chart {
        let losses = self.series.losses.as_slice();
        let chart = if losses.is_empty() {
            chart
        } else {
            chart.marks(Marks::ticks("losses", losses.iter().copied()))
        };
        let probes = self.series.probe_timeouts.as_slice();
        if probes.is_empty() {
            return chart;
        }
        let marks = probes.iter().map(|&time| (time, "probe timeout"));
        chart.marks(Marks::lines("probe timeouts", marks))
    }
}

fn points(samples: &Samples<Point>) -> impl Iterator<Item = Point> + '_ {
    samples.as_slice().iter().copied()
}
