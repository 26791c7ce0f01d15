//! Draws several charts in one image.

use std::fmt::Write;

use crate::escape::{escape, fit};
use crate::path::pixels;
use crate::{Chart, draw, style};

/// A grid of charts of one size, side by side (small multiples).
#[derive(Clone, PartialEq, Debug)]
pub struct Grid {
    title: String,
    columns: usize,
    charts: Vec<Chart>,
}

/// The largest number of charts that are drawn. More would make an image of many megabytes; tables have all of them.
const MAX_CHARTS: usize = 60;
/// The smallest number of points of a chart, even in a grid of many.
const MIN_POINTS: usize = 400;
const TITLE_HEIGHT: f64 = 34.0;

impl Grid {
    /// Creates a grid with a title and a number of columns, 1 to 6.
    pub fn new(title: impl Into<String>, columns: usize) -> Self {
        Self {
            title: title.into(),
            columns: columns.clamp(1, 6),
            charts: Vec::new(),
        }
    }

    /// Adds a chart. The image shows the first 60. All cells have the size of the largest chart.
    #[must_use]
    pub fn chart(mut self, chart: Chart) -> Self {
        self.charts.push(chart);
        self
    }

    /// Gives all charts the same vertical range, so that their heights can be compared.
    #[must_use]
    pub fn same_height(mut self) -> Self {
        let ranges = self.charts.iter().filter_map(draw::y_range);
        let (low, high) = ranges.fold((0.0_f64, 0.0_f64), |all, one| {
            (all.0.min(one.0), all.1.max(one.1))
        });
        if high > low {
            for chart in &mut self.charts {
                chart.y = std::mem::take(&mut chart.y).from(low).to(high);
            }
        }
        self
    }

    /// Returns the grid as an SVG file.
    pub fn to_svg(&self) -> String {
        let charts = &self.charts[..self.charts.len().min(MAX_CHARTS)];
        let cell_width = charts.iter().map(|chart| chart.width).fold(240.0, f64::max);
        let cell_height = charts.iter().map(|chart| chart.height).fold(0.0, f64::max);
        let columns = self.columns.min(charts.len().max(1));
        let rows = charts.len().div_ceil(columns);
        let width = number(columns) * cell_width;
        let height = TITLE_HEIGHT + number(rows) * cell_height;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"courser-plot\" role=\"img\" \
             viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" aria-label=\"{label}\">\
             <style>{style}</style><rect class=\"bg\" width=\"{w}\" height=\"{h}\"/>\
             <text class=\"title\" x=\"12\" y=\"24\">{title}</text>",
            w = pixels(width),
            h = pixels(height),
            label = escape(&format!("{}: {} charts", self.title, self.charts.len())),
            style = style::STYLESHEET,
            title = escape(&fit(&self.title, 15.5, width - 24.0)),
        );
        let points = (draw::POINTS / charts.len().max(1)).max(MIN_POINTS);
        for (index, chart) in charts.iter().enumerate() {
            let _ = write!(
                out,
                "<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">",
                pixels(number(index % columns) * cell_width),
                pixels(TITLE_HEIGHT + number(index / columns) * cell_height),
                pixels(chart.width),
                pixels(chart.height),
            );
            draw::body(&mut out, chart, points);
            out.push_str("</svg>");
        }
        out.push_str("</svg>");
        out
    }

    /// Returns the values of all charts as CSV, each after a line `# title`.
    pub fn to_csv(&self) -> String {
        let mut out = String::new();
        for chart in &self.charts {
            let _ = write!(
                out,
                "# {}\r\n{}",
                chart.title.replace(['\r', '\n'], " "),
                chart.to_csv()
            );
        }
        out
    }
}

#[expect(clippy::cast_precision_loss, reason = "rows and columns")]
fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
