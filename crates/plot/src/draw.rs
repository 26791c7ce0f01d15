//! Draws charts as images.

mod layer;
mod layout;
mod stack;

use std::fmt::Write;

use crate::escape::escape;
use crate::path::pixels;
use crate::series::Shape;
use crate::{Chart, Marker, Marks, Reference, Series, summary};

use self::layout::Layout;

/// The most series drawn. More could not be distinguished, and would make a large image.
const MAX_SERIES: usize = 24;
/// The most groups of events, and the most levels, drawn.
const MAX_GROUPS: usize = 8;
/// The distance by which data may extend beyond the edge of the plot, in pixels.
const OVERHANG: f64 = 4.0;
/// The most points in all lines of a chart together, at about eight bytes each.
pub(crate) const POINTS: usize = 8000;

/// Draws a chart as an image with a stylesheet, which may be empty.
pub(crate) fn svg(chart: &Chart, stylesheet: &str) -> String {
    let (width, height) = (pixels(chart.width), pixels(chart.height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"courser-plot\" role=\"img\" \
         viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         aria-label=\"{}\">",
        escape(&label(chart)),
    );
    if !stylesheet.is_empty() {
        let _ = write!(out, "<style>{stylesheet}</style>");
    }
    body(&mut out, chart, POINTS);
    out.push_str("</svg>");
    out
}

/// Draws the contents of an image, with about `points` points in all lines together.
pub(crate) fn body(out: &mut String, chart: &Chart, points: usize) {
    let layout = Layout::new(chart);
    let _ = write!(
        out,
        "<rect class=\"bg\" width=\"{}\" height=\"{}\"/>",
        pixels(chart.width),
        pixels(chart.height)
    );
    layout.draw_frame(out, chart);
    let plot = layout.plot;
    // A nested image clips data beyond the axes without an id, which two charts could share. It is
    // slightly larger than the plot, so that markers and lines on its edge stay visible.
    let _ = write!(
        out,
        "<svg x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" viewBox=\"{x} {y} {w} {h}\">",
        x = pixels(plot.left - OVERHANG),
        y = pixels(plot.top - OVERHANG),
        w = pixels(plot.width + 2.0 * OVERHANG),
        h = pixels(plot.height + 2.0 * OVERHANG),
    );
    layer::draw(out, chart, &layout, points);
    out.push_str("</svg>");
    layout.draw_axes(out, chart);
}

/// Returns the description that a screen reader announces instead of the image.
fn label(chart: &Chart) -> String {
    summary::text(chart).replace('\n', "; ")
}

/// Returns the range of the vertical axis, or `None` for an empty chart.
pub(crate) fn y_range(chart: &Chart) -> Option<(f64, f64)> {
    (!chart.is_empty()).then(|| Layout::new(chart).y_range())
}

/// Returns the series to draw.
pub(crate) fn drawn(chart: &Chart) -> impl Iterator<Item = &Series> {
    chart.series.iter().take(MAX_SERIES)
}

/// Returns the groups of events to draw.
pub(crate) fn drawn_marks(chart: &Chart) -> impl Iterator<Item = &Marks> {
    let has_any = |marks: &&Marks| !marks.marks.is_empty();
    chart.marks.iter().filter(has_any).take(MAX_GROUPS)
}

/// Returns the levels to draw.
pub(crate) fn drawn_references(chart: &Chart) -> impl Iterator<Item = &Reference> {
    let is_finite = |reference: &&Reference| reference.value.is_finite();
    chart.references.iter().filter(is_finite).take(MAX_GROUPS)
}

/// Returns the dash attribute of a series, so that lines differ in more than their colour.
pub(crate) fn dashes(series: &Series, index: usize) -> &'static str {
    const DASHES: [&str; 4] = [
        "",
        " stroke-dasharray=\"7 2.5\"",
        " stroke-dasharray=\"2.5 2\"",
        " stroke-dasharray=\"9 2.5 2 2.5\"",
    ];
    match series.shape {
        Shape::Area => "",
        _ if series.is_dashed => " stroke-dasharray=\"5 4\"",
        _ => DASHES[index % DASHES.len()],
    }
}

/// Draws a marker at a point.
pub(crate) fn marker(marker: Marker, x: f64, y: f64) -> String {
    let at = format!("{} {}", pixels(x), pixels(y));
    let shape = match marker {
        Marker::Circle => "m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0z",
        Marker::Cross => "m-3.2-3.2l6.4 6.4m0-6.4l-6.4 6.4",
        Marker::Triangle => "m0-4.2l4 7h-8z",
        Marker::Square => "m-3-3h6v6h-6z",
        Marker::Diamond => "m0-4.4l4.4 4.4l-4.4 4.4l-4.4-4.4z",
    };
    let class = if marker == Marker::Cross {
        "line"
    } else {
        "sign"
    };
    format!("<path class=\"{class}\" d=\"M{at}{shape}\"/>")
}

#[cfg(test)]
mod tests;
