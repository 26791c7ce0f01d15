//! A trace of a connection as text, as JSON and as charts.

mod charts;
mod document;
mod text;

pub use self::charts::{Trace, TraceChart};
pub use self::document::document;
pub use self::text::{origin, rows, warnings};
