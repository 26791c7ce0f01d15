//! A Markdown document of what scenarios measured, and the measuring itself.
//!
//! A [`List`] names the rows of the document: a target, the scenarios that it is about, and the measures
//! to show. [`measure`] runs the scenarios of a row and keeps their numbers in a file, so that rows can be
//! measured one by one. [`draw`] makes the charts, and [`write()`] the document.

mod charts;
mod data;
mod document;
mod file;
mod list;
mod measure;

pub use self::charts::draw;
pub use self::data::{Data, Number, Numbers};
pub use self::document::write;
pub use self::list::{List, Row, parse, read};
pub use self::measure::{Measurement, row as measure};
