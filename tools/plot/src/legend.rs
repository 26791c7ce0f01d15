//! Lays out and draws legends of charts.

use std::fmt::Write;

use crate::Chart;
use crate::draw::{shown, symbols};
use crate::escape::{escape, fit, text_width};
use crate::marks::MarkStyle;
use crate::path::pixels;
use crate::series::Shape;

/// One entry of a legend: a symbol and a name.
pub(crate) struct Entry {
    x: f64,
    row: usize,
    class: &'static str,
    symbol: Symbol,
    text: String,
}

/// The symbol in front of a name.
#[derive(Clone, Copy)]
enum Symbol {
    Series(Shape, &'static str),
    Marks(MarkStyle),
    Level,
    More,
}

/// The entries of a legend, placed in rows.
pub(crate) struct Legend {
    entries: Vec<Entry>,
    pub(crate) rows: usize,
}

/// The height of a row in pixels.
pub(crate) const ROW: f64 = 17.0;

const FONT: f64 = 11.0;
const SYMBOL_WIDTH: f64 = 22.0;
const GAP: f64 = 14.0;
const MAX_ENTRY: f64 = 240.0;

impl Legend {
    /// Lays the legend of a chart into at most `max_rows` rows of `width` pixels.
    pub(crate) fn new(chart: &Chart, width: f64, max_rows: usize) -> Self {
        let items = items(chart);
        let is_needed = match items.as_slice() {
            [] => false,
            [(_, _, name)] => !name.eq_ignore_ascii_case(&chart.title) && *name != chart.y.label,
            _ => true,
        };
        let mut legend = Self {
            entries: Vec::new(),
            rows: 0,
        };
        if is_needed && max_rows > 0 {
            legend.lay_out(&items, width, max_rows);
        }
        legend
    }

    fn lay_out(&mut self, items: &[(&'static str, Symbol, &str)], width: f64, max_rows: usize) {
        let (mut x, mut row) = (0.0, 0);
        for (index, &(class, symbol, name)) in items.iter().enumerate() {
            let text = fit(name, FONT, MAX_ENTRY.min(width - SYMBOL_WIDTH));
            let needed = SYMBOL_WIDTH + text_width(&text, FONT);
            let is_last = index + 1 == items.len();
            // The last row needs room for the text `and N more`.
            let more = if is_last { 0.0 } else { GAP + MORE_WIDTH };
            if row + 1 == max_rows && x + needed + more > width {
                let text = format!("and {} more", items.len() - index);
                let (class, symbol) = ("cm", Symbol::More);
                self.entries.push(Entry {
                    x,
                    row,
                    class,
                    symbol,
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
                symbol,
                text,
            });
            x += needed + GAP;
        }
        self.rows = self.entries.last().map_or(0, |entry| entry.row + 1);
    }

    /// Draws the legend with its upper left corner at a position.
    pub(crate) fn draw(&self, out: &mut String, left: f64, top: f64) {
        for entry in &self.entries {
            let (x, y) = (left + entry.x, top + row_offset(entry.row));
            let symbol = draw_symbol(entry.symbol, x, y + ROW / 2.0);
            let text_x = if matches!(entry.symbol, Symbol::More) {
                x
            } else {
                x + SYMBOL_WIDTH
            };
            // Writing to a string never fails.
            let _ = write!(
                out,
                "<g class=\"{}\">{symbol}<text x=\"{}\" y=\"{}\">{}</text></g>",
                entry.class,
                pixels(text_x),
                pixels(y + ROW / 2.0 + 4.0),
                escape(&entry.text),
            );
        }
    }
}

/// Returns everything of a chart that has a name: its CSS class, its symbol and its name.
fn items(chart: &Chart) -> Vec<(&'static str, Symbol, &str)> {
    let mut items = Vec::new();
    for (index, series) in shown::drawn(chart).enumerate() {
        let symbol = Symbol::Series(series.shape, symbols::dashes(series, index));
        items.push((series.colour.class(index), symbol, series.name.as_str()));
    }
    for marks in shown::drawn_marks(chart) {
        let class = marks.colour.class(0);
        items.push((class, Symbol::Marks(marks.style), marks.name.as_str()));
    }
    for reference in shown::drawn_references(chart) {
        items.push(("cm", Symbol::Level, reference.name.as_str()));
    }
    items.retain(|item| !item.2.is_empty());
    items
}

/// Draws the symbol of an entry, 16 pixels wide and centred at the height `y`.
fn draw_symbol(symbol: Symbol, x: f64, y: f64) -> String {
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
    match symbol {
        Symbol::Series(Shape::Line | Shape::Step, dashes) => stroke("line", dashes),
        Symbol::Series(Shape::Area, dashes) => block("area") + &stroke("line", dashes),
        Symbol::Series(Shape::Band, _) => block("area"),
        Symbol::Series(Shape::Stack, _) => block("stack"),
        Symbol::Series(Shape::Dots, _) => format!(
            "<path class=\"dots\" d=\"M{} {y}h0M{middle} {y}h0M{} {y}h0\"/>",
            pixels(x + 3.0),
            pixels(x + 13.0),
            y = pixels(y),
        ),
        Symbol::Series(Shape::Markers(marker), _) => symbols::marker(marker, x + 8.0, y),
        Symbol::Marks(MarkStyle::Ticks) => {
            let top = pixels(y - 4.0);
            format!(
                "<path class=\"tick\" d=\"M{} {top}v8M{middle} {top}v8M{} {top}v8\"/>",
                pixels(x + 4.0),
                pixels(x + 12.0)
            )
        }
        Symbol::Marks(MarkStyle::Lines) => {
            format!(
                "<path class=\"rule\" d=\"M{middle} {}v12\"/>",
                pixels(y - 6.0)
            )
        }
        Symbol::Level => stroke("level", ""),
        Symbol::More => String::new(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
fn row_offset(row: usize) -> f64 {
    row as f64 * ROW
}

const MORE_WIDTH: f64 = 80.0;
