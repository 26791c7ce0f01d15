//! Draws the data between the axes, from the lowest layer to the topmost.

use std::fmt::Write;

use crate::escape::{escape, shorten, text_width};
use crate::marks::MarkStyle;
use crate::path::{Path, pixels};
use crate::series::Shape;
use crate::{Chart, Marker, Marks, Series, summary, thin};

use super::layout::{Layout, text};
use super::shown::{drawn, drawn_marks, drawn_references};
use super::symbols::{dashes, marker};

/// The largest number of elements with their own tooltips in one series or group of events. More are drawn as one
/// element.
const MAX_TOOLTIPS: usize = 80;
/// The smallest and the largest number of tooltip columns.
const COLUMNS: (f64, f64) = (10.0, 60.0);
/// The width of a tooltip column in pixels, within the limits of their number.
const COLUMN_WIDTH: f64 = 10.0;
/// The largest number of values in one tooltip.
const MAX_LINES: usize = 10;
/// The longest name in a tooltip, in characters.
const MAX_NAME: usize = 60;

/// Draws everything between the axes.
pub(super) fn draw(out: &mut String, chart: &Chart, layout: &Layout, points: usize) {
    let count = drawn(chart).count().max(1);
    let budget = points / count;
    let is_flat = |shape| matches!(shape, Shape::Area | Shape::Band | Shape::Stack);
    let mut stacked = 0;
    for (index, series) in drawn(chart).enumerate() {
        let painter = Painter {
            chart,
            layout,
            series,
            index,
            budget,
        };
        match series.shape {
            Shape::Stack => {
                painter.stack(out, stacked);
                stacked += 1;
            }
            Shape::Area | Shape::Band => painter.series(out),
            _ => {}
        }
    }
    let mut row = 0;
    for marks in drawn_marks(chart) {
        draw_marks(out, chart, layout, marks, row);
        row += u32::from(marks.style == MarkStyle::Ticks);
    }
    for reference in drawn_references(chart) {
        let plot = layout.plot;
        let y = layout.y.pixel(reference.value);
        let _ = write!(
            out,
            "<g class=\"cm\">{}<path class=\"level\" d=\"M{} {}h{}\"/></g>",
            title(&format!(
                "{}: {}",
                reference.name,
                chart.y.unit.format(reference.value)
            )),
            pixels(plot.left),
            pixels(y),
            pixels(plot.width),
        );
    }
    draw_columns(out, chart, layout);
    for (index, series) in drawn(chart).enumerate() {
        if !is_flat(series.shape) {
            Painter {
                chart,
                layout,
                series,
                index,
                budget,
            }
            .series(out);
        }
    }
}

/// Draws one series with at most `budget` points.
struct Painter<'a> {
    chart: &'a Chart,
    layout: &'a Layout,
    series: &'a Series,
    index: usize,
    budget: usize,
}

impl Painter<'_> {
    fn series(&self, out: &mut String) {
        let series = self.series;
        self.open(out);
        let edge = self.edge(&series.points);
        let dashes = dashes(series, self.index);
        match series.shape {
            Shape::Line | Shape::Stack => element(out, "line", dashes, &line(&edge)),
            Shape::Step => element(out, "line", dashes, &step(&edge)),
            Shape::Area => {
                element(out, "area", "", &self.filled(&edge));
                element(out, "line", dashes, &line(&edge));
            }
            Shape::Band => {
                let lows = series.points.iter().zip(&series.lows);
                let lows: Vec<_> = lows.map(|(point, low)| (point.0, *low)).collect();
                element(out, "area", "", &between(&edge, &self.edge(&lows)));
            }
            Shape::Dots => element(out, "dots", "", &self.dots()),
            Shape::Markers(marker) => self.markers(out, marker),
        }
        out.push_str("</g>");
    }

    /// Draws a stacked series, between its edge and the one below. `place` counts stacked series from 0.
    fn stack(&self, out: &mut String, place: usize) {
        let Some(points) = self.layout.stack.get(place) else {
            return;
        };
        self.open(out);
        let edge = self.edge(points);
        let below = place
            .checked_sub(1)
            .and_then(|below| self.layout.stack.get(below));
        let below = match below {
            Some(points) => self.edge(points),
            None => {
                let zero = self.layout.y.pixel(0.0);
                edge.iter().map(|point| (point.0, zero)).collect()
            }
        };
        element(out, "stack", "", &between(&edge, &below));
        self.name_inside(out, place);
        out.push_str("</g>");
    }

    /// Writes the name of a stacked series inside its area where the area is thickest, if it fits.
    fn name_inside(&self, out: &mut String, place: usize) {
        let name = shorten(&self.series.name, 24);
        let half = text_width(&name, 11.0) / 2.0;
        let plot = self.layout.plot;
        let top = self.edge(&self.layout.stack[place]);
        let below = place
            .checked_sub(1)
            .map(|below| self.edge(&self.layout.stack[below]));
        let zero = self.layout.y.pixel(0.0);
        let places = (1..NAME_PLACES).filter_map(|step| {
            let x = plot.left + plot.width * f64::from(step) / f64::from(NAME_PLACES);
            let is_near = |point: &&(f64, f64)| (point.0 - x).abs() <= half + 4.0;
            let is_inside = x - half > plot.left + 4.0 && x + half < plot.right() - 4.0;
            let upper = top.iter().filter(is_near).map(|point| point.1);
            let lower = below.iter().flatten().filter(is_near).map(|point| point.1);
            let (upper, lower) = (upper.fold(plot.top, f64::max), lower.fold(zero, f64::min));
            is_inside.then_some((lower - upper, x, f64::midpoint(upper, lower)))
        });
        let best = places.max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((thickness, x, y)) = best
            && thickness > 16.0
        {
            text(out, "inside mid", (x, y + 4.0), &name);
        }
    }

    fn open(&self, out: &mut String) {
        let class = self.series.colour.class(self.index);
        let text = summary::series(self.series, self.chart.y.unit);
        let _ = write!(out, "<g class=\"{class}\">{}", title(&text));
    }

    /// Converts points to pixels. Leaves out points far outside the plot, and thins the others to
    /// the visible resolution.
    fn edge(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let (x, y) = (&self.layout.x, &self.layout.y);
        let first = points
            .partition_point(|point| point.0 < x.low())
            .saturating_sub(1);
        let last = points.partition_point(|point| point.0 <= x.high()) + 1;
        let shown = points
            .get(first..last.min(points.len()))
            .unwrap_or_default();
        let shown: Vec<_> = shown
            .iter()
            .map(|point| (x.pixel(point.0), y.pixel(point.1)))
            .filter(|point| !point.0.is_nan())
            .collect();
        thin::columns(&shown, thin::density(self.budget, self.layout.plot.width))
    }

    fn filled(&self, edge: &[(f64, f64)]) -> Path {
        let y = &self.layout.y;
        let bottom = y.pixel(0.0_f64.max(y.low()));
        let bottom = if bottom.is_nan() {
            self.layout.plot.bottom()
        } else {
            bottom
        };
        let floor: Vec<_> = edge
            .iter()
            .map(|point| (point.0, point.1 * 0.0 + bottom))
            .collect();
        between(edge, &floor)
    }

    fn pixels(&self) -> Vec<(f64, f64)> {
        let (x, y) = (&self.layout.x, &self.layout.y);
        let points = self.series.points.iter();
        points
            .filter(|point| (x.low()..=x.high()).contains(&point.0))
            .map(|point| (x.pixel(point.0), y.pixel(point.1)))
            .filter(|point| !point.0.is_nan() && !point.1.is_nan())
            .collect()
    }

    fn dots(&self) -> Path {
        let mut path = Path::default();
        for (x, y) in thin::cells(self.pixels(), self.budget) {
            path.dot(x, y);
        }
        path
    }

    fn markers(&self, out: &mut String, shape: Marker) {
        let points = self.pixels();
        let has_tooltips = points.len() <= MAX_TOOLTIPS;
        if !has_tooltips {
            for (x, y) in thin::cells(points, MAX_MARKERS) {
                out.push_str(&marker(shape, x, y));
            }
            return;
        }
        let (x_unit, y_unit) = (self.chart.x.unit, self.chart.y.unit);
        for point in &self.series.points {
            let (x, y) = (self.layout.x.pixel(point.0), self.layout.y.pixel(point.1));
            if x.is_nan() || y.is_nan() {
                continue;
            }
            let (at, value) = (x_unit.format(point.0), y_unit.format(point.1));
            let name = shorten(&self.series.name, MAX_NAME);
            let tooltip = title(&format!("{name}: {value} at {at}"));
            let _ = write!(out, "<g>{tooltip}{}</g>", marker(shape, x, y));
        }
    }
}

/// The number of positions tried for the name of an area.
const NAME_PLACES: u32 = 40;
/// The largest number of markers of one series, at about seventy bytes each.
const MAX_MARKERS: usize = 400;

fn element(out: &mut String, class: &str, extra: &str, path: &Path) {
    if !path.is_empty() {
        let _ = write!(
            out,
            "<path class=\"{class}\"{extra} d=\"{}\"/>",
            path.as_str()
        );
    }
}

/// Returns the runs of points between gaps.
fn runs(points: &[(f64, f64)]) -> impl Iterator<Item = &[(f64, f64)]> {
    points
        .split(|point| point.1.is_nan())
        .filter(|run| !run.is_empty())
}

fn line(points: &[(f64, f64)]) -> Path {
    let mut path = Path::default();
    for run in runs(points) {
        path.move_to(run[0].0, run[0].1);
        if run.len() == 1 {
            // A line of one point between gaps would be invisible.
            path.line_to(run[0].0 + 1.0, run[0].1);
        }
        for point in &run[1..] {
            path.line_to(point.0, point.1);
        }
    }
    path
}

fn step(points: &[(f64, f64)]) -> Path {
    let mut path = Path::default();
    for run in runs(points) {
        let mut y = run[0].1;
        path.move_to(run[0].0, y);
        for point in &run[1..] {
            path.line_to(point.0, y);
            path.line_to(point.0, point.1);
            y = point.1;
        }
    }
    path
}

/// Returns the area between two edges. Each run of the upper edge is closed along the part of the
/// lower edge beneath it.
fn between(upper: &[(f64, f64)], lower: &[(f64, f64)]) -> Path {
    let mut path = Path::default();
    for run in runs(upper) {
        let (from, to) = (run[0].0, run[run.len() - 1].0);
        path.move_to(run[0].0, run[0].1);
        for point in &run[1..] {
            path.line_to(point.0, point.1);
        }
        let below = lower.iter().rev();
        for point in below.filter(|point| (from..=to).contains(&point.0) && !point.1.is_nan()) {
            path.line_to(point.0, point.1);
        }
        path.close();
    }
    path
}

/// Draws the events of one group. Ticks of several groups are drawn in rows above each other.
fn draw_marks(out: &mut String, chart: &Chart, layout: &Layout, marks: &Marks, row: u32) {
    let plot = layout.plot;
    let mut groups: Vec<(f64, usize, &str, f64)> = Vec::new();
    for (x, label) in &marks.marks {
        let at = layout.x.pixel(*x);
        if at.is_nan() || at < plot.left - 0.5 || at > plot.right() + 0.5 {
            continue;
        }
        match groups.last_mut() {
            Some(group) if (at - group.0).abs() < 1.0 => group.1 += 1,
            _ => groups.push((at, 1, label, *x)),
        }
    }
    let stroke = |path: &mut Path, x: f64| match marks.style {
        MarkStyle::Lines => {
            path.move_to(x, plot.top);
            path.line_to(x, plot.bottom());
        }
        MarkStyle::Ticks => {
            let bottom = plot.bottom() - 1.0 - f64::from(row) * 11.0;
            path.move_to(x, bottom);
            path.line_to(x, bottom - 9.0);
        }
    };
    let class = if marks.style == MarkStyle::Lines {
        "rule"
    } else {
        "tick"
    };
    let name = shorten(&marks.name, MAX_NAME);
    let all = format!("{name}: {}", summary::events(marks.marks.len()));
    let _ = write!(
        out,
        "<g class=\"{}\">{}",
        marks.colour.class(0),
        title(&all)
    );
    if groups.len() > MAX_TOOLTIPS {
        let mut path = Path::default();
        groups.iter().for_each(|group| stroke(&mut path, group.0));
        element(out, class, "", &path);
        out.push_str("</g>");
        return;
    }
    for (at, count, label, x) in groups {
        let mut path = Path::default();
        stroke(&mut path, at);
        let times = if count > 1 {
            format!(" ({})", summary::events(count))
        } else {
            String::new()
        };
        let label = shorten(label, MAX_NAME);
        let space = if label.is_empty() { "" } else { " " };
        let at = chart.x.unit.format(x);
        let tooltip = title(&format!("{name}{space}{label} at {at}{times}"));
        let _ = write!(out, "<g>{tooltip}");
        element(out, class, "", &path);
        out.push_str("</g>");
    }
    out.push_str("</g>");
}

/// Draws invisible columns over the whole plot. The tooltip of each shows the values at its middle.
fn draw_columns(out: &mut String, chart: &Chart, layout: &Layout) {
    let plot = layout.plot;
    let columns = (plot.width / COLUMN_WIDTH)
        .floor()
        .clamp(COLUMNS.0, COLUMNS.1);
    let width = plot.width / columns;
    let has_values = |series: &&Series| !matches!(series.shape, Shape::Dots | Shape::Markers(_));
    for column in (0_u32..)
        .map(f64::from)
        .take_while(|column| *column < columns)
    {
        let x = layout.x.value((column + 0.5) / columns);
        let mut values = String::new();
        for series in drawn(chart).filter(has_values).take(MAX_LINES) {
            if let Some(value) = series.value_at(x) {
                let name = shorten(&series.name, MAX_NAME);
                let _ = write!(values, "\n{name}: {}", chart.y.unit.format(value));
            }
        }
        if values.is_empty() {
            continue;
        }
        let at = chart.x.unit.format(x);
        // Escaping replaces line breaks, so that each line is escaped separately.
        let lines: Vec<String> = values.lines().map(escape).collect();
        let _ = write!(
            out,
            "<rect class=\"hit\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">\
             <title>{at}{}</title></rect>",
            pixels(plot.left + column * width),
            pixels(plot.top),
            pixels(width),
            pixels(plot.height),
            lines.join("\n"),
        );
    }
}

fn title(text: &str) -> String {
    format!("<title>{}</title>", escape(text))
}
