//! Draws charts as SVG for light and dark pages.
//!
//! A [`Chart`] takes series in base units (seconds, bytes, bits per second). It becomes an SVG
//! image, a CSV table with every value, or a text summary. A [`Grid`] puts several charts into one
//! image. A [`page::Page`] puts charts, tables and text into one HTML file that needs neither
//! network nor script.
//!
//! ```
//! use courser_plot::{Axis, Chart, Marks, Reference, Series, Unit};
//!
//! let window = (0..100).map(|step| (f64::from(step) / 10.0, f64::from(step % 40) * 1500.0));
//! let svg = Chart::new("Congestion window", Axis::time(), Axis::new("bytes", Unit::Bytes))
//!     .subtitle("20 Mbit/s, 40 ms")
//!     .series(Series::step("congestion window", window))
//!     .marks(Marks::ticks("losses", [4.0, 8.0]))
//!     .reference(Reference::new("path capacity", 50_000.0))
//!     .to_svg();
//! assert!(svg.starts_with("<svg"));
//! ```
//!
//! # Light and dark
//!
//! Colours are CSS custom properties, with a `prefers-color-scheme` rule in the `<style>` of the
//! image. So a single SVG file follows the reader's setting. Each rule also names the light colour
//! as a plain value, for programs without support for custom properties.
//!
//! Every rule is scoped by one class, and no element of an image has an `id`: plots are clipped by
//! nested `<svg>` elements. So one HTML page can hold any number of images.
//!
//! # Untrusted text
//!
//! Names and labels may come from untrusted traces. All text is escaped. Characters that XML
//! forbids or that change the direction of text are replaced, and long text is shortened in images.
//! Cells of a CSV table that a spreadsheet would read as a formula begin with `'`.
//!
//! # Reasons against a charting library
//!
//! Libraries such as `plotters` write each colour as a fixed value at each element, so that an image
//! cannot follow the page. They draw every point, and pass characters that XML forbids on to the
//! file. `docs/design/0010-charts.md` compares them by measurement.

mod axis;
mod chart;
mod colour;
mod csv;
mod draw;
mod escape;
mod grid;
mod legend;
mod marks;
pub mod page;
mod path;
mod scale;
mod series;
mod style;
mod summary;
mod thin;
mod ticks;
mod unit;

pub use axis::Axis;
pub use chart::Chart;
pub use colour::Colour;
pub use escape::escape;
pub use grid::Grid;
pub use marks::{Marks, Reference};
pub use series::{Marker, Series};
pub use style::stylesheet;
pub use unit::Unit;
