//! Which line is what.

use std::fmt::Write;

use crate::escape::{escape, fit, text_width};
use crate::marks::MarkStyle;
use crate::path::pixels;
use crate::series::Shape;
use crate::{Chart, draw};

/// One entry: a sign and a name.
pub(crate) struct Entry {
    x: f64,
    row: usize,
    class: &'static str,
    sign: Sign,
    text: String,
}

/// What stands before a name.
#[derive(Clone, Copy)]
enum Sign {
    Series(Shape, &'static str),
    Marks(MarkStyle),
    Level,
    More,
}

/// Entries placed in rows; the rows they take.
pub(crate) struct Legend {
    entries: Vec<Entry>,
    pub(crate) rows: usize,
}

/// Height of a row.
pub(crate) const ROW: f64 = 17.0;

const FONT: f64 = 11.0;
const SIGN_WIDTH: f64 = 22.0;
const GAP: f64 = 14.0;
const MAX_ENTRY: f64 = 240.0;

impl Legend {
    /// Lays the legend of a chart into at most `max_rows` rows of `width` pixels.
    pub(crate) fn new(chart: &Chart, width: f64, max_rows: usize) -> Self {
        let wanted = wanted(chart);
        let is_needed = match wanted.as_slice() {
            [] => false,
            [(_, _, name)] => !name.eq_ignore_ascii_case(&chart.title) && *name != chart.y.label,
            _ => true,
        };
        let mut legend = Self {
            entries: Vec::new(),
            rows: 0,
        };
        if is_needed && max_rows > 0 {
            legend.place(&wanted, width, max_rows);
        }
        legend
    }

    fn place(&mut self, wanted: &[(&'static str, Sign, &str)], width: f64, max_rows: usize) {
        let (mut x, mut row) = (0.0, 0);
        for (index, &(class, sign, name)) in wanted.iter().enumerate() {
            let text = fit(name, FONT, MAX_ENTRY.min(width - SIGN_WIDTH));
            let needed = SIGN_WIDTH + text_width(&text, FONT);
            let is_last = index + 1 == wanted.len();
            // In the last row there has to be room to say how many are left out.
            let more = if is_last { 0.0 } else { GAP + MORE_WIDTH };
            if row + 1 == max_rows && x + needed + more > width {
                let text = format!("and {} more", wanted.len() - index);
                let (class, sign) = ("cm", Sign::More);
                self.entries.push(Entry {
                    x,
                    row,
                    class,
                    sign,
                    text,
                });
                break;
            }
            if x > 0.0 && x + needed > width {
                (x, row) = (0.0, row + 1);
            }
            self.entries.push(Entry {
                x,
                row,
                class,
                sign,
                text,
            });
            x += needed + GAP;
        }
        self.rows = self.entries.last().map_or(0, |entry| entry.row + 1);
    }

    /// Draws the legend with its upper left corner here.
    pub(crate) fn draw(&self, out: &mut String, left: f64, top: f64) {
        for entry in &self.entries {
            let (x, y) = (left + entry.x, top + row_offset(entry.row));
            let sign = sign(entry.sign, x, y + ROW / 2.0);
            let text_x = if matches!(entry.sign, Sign::More) {
                x
            } else {
                x + SIGN_WIDTH
            };
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "<g class=\"{}\">{sign}<text x=\"{}\" y=\"{}\">{}</text></g>",
                entry.class,
                pixels(text_x),
                pixels(y + ROW / 2.0 + 4.0),
                escape(&entry.text),
            );
        }
    }
}

fn wanted(chart: &Chart) -> Vec<(&'static str, Sign, &str)> {
    let mut wanted = Vec::new();
    for (index, series) in draw::drawn(chart).enumerate() {
        let sign = Sign::Series(series.shape, draw::dashes(series, index));
        wanted.push((series.colour.class(index), sign, series.name.as_str()));
    }
    for marks in draw::drawn_marks(chart) {
        let class = marks.colour.class(0);
        wanted.push((class, Sign::Marks(marks.style), marks.name.as_str()));
    }
    for reference in draw::drawn_references(chart) {
        wanted.push(("cm", Sign::Level, reference.name.as_str()));
    }
    wanted.retain(|entry| !entry.2.is_empty());
    wanted
}

/// The sign of an entry, 16 pixels wide, around the height `y`.
fn sign(sign: Sign, x: f64, y: f64) -> String {
    let (left, right, middle) = (pixels(x), pixels(x + 16.0), pixels(x + 8.0));
    let stroke = |class: &str, extra: &str| {
        format!(
            "<path class=\"{class}\"{extra} d=\"M{left} {}H{right}\"/>",
            pixels(y)
        )
    };
    let block = |class: &str| {
        let top = pixels(y - 4.5);
        format!("<rect class=\"{class}\" x=\"{left}\" y=\"{top}\" width=\"16\" height=\"9\"/>")
    };
    match sign {
        Sign::Series(Shape::Line | Shape::Step, dashes) => stroke("line", dashes),
        Sign::Series(Shape::Area, dashes) => block("area") + &stroke("line", dashes),
        Sign::Series(Shape::Band, _) => block("area"),
        Sign::Series(Shape::Stack, _) => block("stack"),
        Sign::Series(Shape::Dots, _) => format!(
            "<path class=\"dots\" d=\"M{} {y}h0M{middle} {y}h0M{} {y}h0\"/>",
            pixels(x + 3.0),
            pixels(x + 13.0),
            y = pixels(y),
        ),
        Sign::Series(Shape::Markers(marker), _) => draw::marker(marker, x + 8.0, y),
        Sign::Marks(MarkStyle::Ticks) => {
            let top = pixels(y - 4.0);
            format!(
                "<path class=\"tick\" d=\"M{} {top}v8M{middle} {top}v8M{} {top}v8\"/>",
                pixels(x + 4.0),
                pixels(x + 12.0)
            )
        }
        Sign::Marks(MarkStyle::Lines) => {
            format!(
                "<path class=\"rule\" d=\"M{middle} {}v12\"/>",
                pixels(y - 6.0)
            )
        }
        Sign::Level => stroke("level", ""),
        Sign::More => String::new(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
fn row_offset(row: usize) -> f64 {
    row as f64 * ROW
}

const MORE_WIDTH: f64 = 80.0;
