//! Traces of QUIC connections (qlog) as text, as JSON and as charts.
//!
//! This crate is `courser qlog`: [`QlogCommand`] has its flags and [`run`] runs it.

mod args;
mod charts;
mod document;
mod error;
mod file;
mod run;
mod text;

pub use self::args::QlogCommand;
pub use self::charts::{Trace, TraceChart};
pub use self::error::Error;
pub use self::run::{Console, render, run};
