//! Lays out a chart, and draws the parts around its plot.

use std::fmt::Write;

use crate::escape::{escape, fit, text_width};
use crate::legend::{self, Legend};
use crate::marks::MarkStyle;
use crate::path::pixels;
use crate::scale::{Scale, Tick};
use crate::series::Shape;
use crate::{Chart, Series};

use super::shown::{drawn, drawn_marks, drawn_references};
use super::stack;

/// The rectangle between the axes, in pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rectangle {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Rectangle {
    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// The positions of all parts of a chart.
pub(crate) struct Layout {
    pub(crate) plot: Rectangle,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
    /// The upper edges of the stacked series, in their order.
    pub(crate) stack: Vec<Vec<(f64, f64)>>,
    legend: Legend,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    x_heading: String,
    y_heading: String,
}

const EDGE: f64 = 12.0;
const FONT: f64 = 11.0;
const TITLE_HEIGHT: f64 = 28.0;
const SUBTITLE_HEIGHT: f64 = 17.0;
const HEADING_HEIGHT: f64 = 23.0;
/// The height of a row of event labels above the plot.
const LABEL_HEIGHT: f64 = 12.0;
const LABEL_ROWS: usize = 2;
/// The smallest height of an image with event labels.
const MIN_HEIGHT_WITH_LABELS: f64 = 260.0;
/// The height that a legend leaves for the plot.
const MIN_PLOT_HEIGHT: f64 = 50.0;
const MAX_LEGEND_ROWS: usize = 4;
/// The height of tick labels and heading below the plot.
const BOTTOM: f64 = 40.0;

impl Layout {
    pub(crate) fn new(chart: &Chart) -> Self {
        let stacked: Vec<&Series> = drawn(chart)
            .filter(|one| one.shape == Shape::Stack)
            .collect();
        let stack = stack::edges(&stacked);
        let top = top(chart);
        let legend = Legend::new(chart, chart.width - 2.0 * EDGE, legend_rows(chart, top));
        let top = top + legend_height(&legend);
        let height = chart.height - top - BOTTOM;
        let y_count = count_that_fits(height, 34.0);
        let y = Scale::new(&chart.y, y_range(chart, &stack), !chart.y.is_tight)
            .rounded(&chart.y, y_count)
            .over(top + height, top);
        // Numbers along empty axes would look like measured values.
        let has_ticks = !chart.is_empty();
        let y_ticks = if has_ticks {
            y.ticks(y_count)
        } else {
            Vec::new()
        };
        let widest = y_ticks.iter().map(|tick| text_width(&tick.text, FONT));
        let left = EDGE + widest.fold(10.0, f64::max) + 8.0;
        let width = (chart.width - left - EDGE - 8.0).max(60.0);
        let plot = Rectangle {
            left,
            top,
            width,
            height,
        };
        let x = Scale::new(&chart.x, x_range(chart), false).over(left, plot.right());
        let x_ticks = if has_ticks {
            x.ticks(count_that_fits(width, 70.0))
        } else {
            Vec::new()
        };
        Self {
            plot,
            x_heading: chart.x.heading(x.symbol()),
            y_heading: chart.y.heading(y.symbol()),
            x,
            y,
            stack,
            legend,
            x_ticks: without_overlaps(x_ticks),
            y_ticks,
        }
    }

    /// Returns the range of the vertical axis.
    pub(crate) fn y_range(&self) -> (f64, f64) {
        (self.y.low(), self.y.high())
    }

    /// Draws the parts below the data: title, legend, grid, headings and tick labels.
    pub(crate) fn draw_frame(&self, out: &mut String, chart: &Chart) {
        let room = chart.width - 2.0 * EDGE;
        let plot = self.plot;
        text(out, "title", (EDGE, 21.0), &fit(&chart.title, 15.5, room));
        let mut y = TITLE_HEIGHT;
        if !chart.subtitle.is_empty() {
            text(
                out,
                "sub dim",
                (EDGE, y + 10.0),
                &fit(&chart.subtitle, 12.0, room),
            );
            y += SUBTITLE_HEIGHT;
        }
        self.legend.draw(out, EDGE, y);
        y += legend_height(&self.legend);
        text(
            out,
            "dim",
            (EDGE, y + 13.0),
            &fit(&self.y_heading, FONT, room),
        );
        let middle = plot.left + plot.width / 2.0;
        let x_heading = fit(&self.x_heading, FONT, room);
        text(out, "dim mid", (middle, plot.bottom() + 33.0), &x_heading);
        let mut grid = String::new();
        for tick in &self.y_ticks {
            text(
                out,
                "dim num end",
                (plot.left - 6.0, tick.at + 3.8),
                &tick.text,
            );
            let _ = write!(
                grid,
                "M{} {}h{}",
                pixels(plot.left),
                pixels(tick.at),
                pixels(plot.width)
            );
        }
        for tick in &self.x_ticks {
            text(
                out,
                "dim num mid",
                (tick.at, plot.bottom() + 17.0),
                &tick.text,
            );
            let _ = write!(
                grid,
                "M{} {}v{}",
                pixels(tick.at),
                pixels(plot.top),
                pixels(plot.height)
            );
        }
        if !grid.is_empty() {
            let _ = write!(out, "<path class=\"grid\" d=\"{grid}\"/>");
        }
        if chart.is_empty() {
            text(
                out,
                "dim mid sub",
                (middle, plot.top + plot.height / 2.0),
                "no data",
            );
        }
    }

    /// Draws the parts above the data: the axes and the labels of events.
    pub(crate) fn draw_axes(&self, out: &mut String, chart: &Chart) {
        let plot = self.plot;
        let mut ticks = String::new();
        for tick in &self.x_ticks {
            let _ = write!(ticks, "M{} {}v4", pixels(tick.at), pixels(plot.bottom()));
        }
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{} {}H{}{ticks}\"/>",
            pixels(plot.left),
            pixels(plot.bottom()),
            pixels(plot.right()),
        );
        self.draw_event_labels(out, chart);
    }

    /// Draws the labels of events at their lines, where they fit. The tooltips contain all labels.
    fn draw_event_labels(&self, out: &mut String, chart: &Chart) {
        let plot = self.plot;
        let lines = drawn_marks(chart).filter(|marks| marks.style == MarkStyle::Lines);
        let mut labels: Vec<(f64, &str)> = lines
            .flat_map(|marks| &marks.marks)
            .map(|(x, label)| (self.x.pixel(*x), label.as_str()))
            .filter(|(x, label)| {
                !label.is_empty() && (plot.left - 0.5..=plot.right() + 0.5).contains(x)
            })
            .collect();
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free_from = vec![f64::MIN; label_rows(chart)];
        for (x, label) in labels {
            let label = fit(label, LABEL_FONT, MAX_LABEL);
            let width = text_width(&label, LABEL_FONT);
            // A label begins at its line, like the state it names, unless the image is too narrow.
            let left = match x + width < chart.width - 4.0 {
                true => x - 1.0,
                false => x + 1.0 - width,
            };
            let Some(row) = free_from.iter().position(|free| left >= *free) else {
                continue;
            };
            let y = plot.top - 4.0 - row_height(row, LABEL_HEIGHT);
            text(out, "dim mark", (left, y), &label);
            free_from[row] = left + width + 6.0;
        }
    }
}

const LABEL_FONT: f64 = 10.0;
const MAX_LABEL: f64 = 150.0;

/// Writes one line of text.
pub(crate) fn text(out: &mut String, class: &str, at: (f64, f64), text: &str) {
    if text.is_empty() {
        return;
    }
    let (x, y) = (pixels(at.0), pixels(at.1));
    let _ = write!(
        out,
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>",
        escape(text)
    );
}

/// Returns the height of everything above the plot, without the legend.
fn top(chart: &Chart) -> f64 {
    let subtitle = match chart.subtitle.is_empty() {
        true => 0.0,
        false => SUBTITLE_HEIGHT,
    };
    TITLE_HEIGHT + subtitle + HEADING_HEIGHT + row_height(label_rows(chart), LABEL_HEIGHT)
}

/// Returns the number of rows for event labels: none without labels, and none in small images.
fn label_rows(chart: &Chart) -> usize {
    let mut lines = drawn_marks(chart).filter(|marks| marks.style == MarkStyle::Lines);
    let has_labels = lines.any(|marks| marks.marks.iter().any(|mark| !mark.1.is_empty()));
    match has_labels && chart.height >= MIN_HEIGHT_WITH_LABELS {
        true => LABEL_ROWS,
        false => 0,
    }
}

/// Returns the largest number of legend rows, up to four, that leaves the plot a readable height.
fn legend_rows(chart: &Chart, top: f64) -> usize {
    let room = chart.height - top - BOTTOM - MIN_PLOT_HEIGHT;
    (1..=MAX_LEGEND_ROWS)
        .take_while(|rows| row_height(*rows, legend::ROW) <= room)
        .count()
}

fn legend_height(legend: &Legend) -> f64 {
    row_height(legend.rows, legend::ROW)
}

#[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
fn row_height(rows: usize, height: f64) -> f64 {
    rows as f64 * height
}

/// Returns the range of x over all series and events.
fn x_range(chart: &Chart) -> Option<(f64, f64)> {
    let series = drawn(chart).flat_map(|one| one.points.iter().map(|point| point.0));
    let marks = drawn_marks(chart).flat_map(|marks| marks.marks.iter().map(|mark| mark.0));
    range(series.chain(marks), chart.x.is_logarithmic)
}

/// Returns the range of y over all series and levels, within the range of x if one is set.
fn y_range(chart: &Chart, stack: &[Vec<(f64, f64)>]) -> Option<(f64, f64)> {
    let (from, to) = (
        chart.x.low.unwrap_or(f64::MIN),
        chart.x.high.unwrap_or(f64::MAX),
    );
    let is_shown = |point: &&(f64, f64)| (from..=to).contains(&point.0);
    let series = drawn(chart)
        .filter(|one| one.shape != Shape::Stack)
        .flat_map(|one| &one.points)
        .chain(stack.last().into_iter().flatten())
        .filter(is_shown)
        .map(|point| point.1);
    let lows = drawn(chart).flat_map(|one| one.lows.iter().copied());
    let references = drawn_references(chart).map(|reference| reference.value);
    range(series.chain(lows).chain(references), chart.y.is_logarithmic)
}

fn range(values: impl Iterator<Item = f64>, is_logarithmic: bool) -> Option<(f64, f64)> {
    values
        .filter(|value| value.is_finite() && (!is_logarithmic || *value > 0.0))
        .fold(None, |range, value| match range {
            None => Some((value, value)),
            Some((low, high)) => Some((value.min(low), value.max(high))),
        })
}

/// Removes ticks whose labels would touch the previous one.
fn without_overlaps(ticks: Vec<Tick>) -> Vec<Tick> {
    let mut free_from = f64::MIN;
    let fits = |tick: &Tick| {
        let half = text_width(&tick.text, FONT) / 2.0;
        let does_fit = tick.at - half >= free_from;
        if does_fit {
            free_from = tick.at + half + 6.0;
        }
        does_fit
    };
    ticks.into_iter().filter(fits).collect()
}

/// Returns the number of items of this size that fit into a length, at least two.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "lengths are positive and bounded by the size of the image"
)]
fn count_that_fits(length: f64, size: f64) -> usize {
    (length / size).floor().max(2.0) as usize
}
