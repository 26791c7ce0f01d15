//! A trace of a connection as text and as charts.

mod charts;
mod text;

pub use self::charts::{TraceChart, TraceView, rate_width};
pub use self::text::{origin, rows};
