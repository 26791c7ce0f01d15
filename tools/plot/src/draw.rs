//! Draws charts as images.

mod layer;
mod layout;
pub(crate) mod shown;
mod stack;
pub(crate) mod symbols;

use std::fmt::Write;

use crate::escape::escape;
use crate::path::pixels;
use crate::style::STYLESHEET;
use crate::{Chart, summary};

use self::layout::Layout;

impl Chart {
    /// Returns the chart as an SVG file with its own stylesheet, for light and dark pages.
    pub fn to_svg(&self) -> String {
        svg(self, STYLESHEET)
    }

    /// Returns the chart as an SVG element, for a page that contains
    /// [`stylesheet`](crate::stylesheet) once.
    pub fn to_fragment(&self) -> String {
        svg(self, "")
    }
}

/// The distance by which data may extend beyond the edge of the plot, in pixels.
const OVERHANG: f64 = 4.0;
/// The largest number of points in all lines of a chart together, at about eight bytes each.
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

#[cfg(test)]
mod tests;
