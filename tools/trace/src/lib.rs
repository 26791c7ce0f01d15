//! Analyzes traces of QUIC connections (qlog): as text, as JSON, as charts and as explanations.
//!
//! [`qlog`] reads traces. [`explain`] finds what limited a transfer. [`Trace`] draws charts.
//!
//! ```
//! use courser_trace::qlog::Reader;
//! use courser_trace::explain::{Cause, Explanation, sentences};
//!
//! let trace = concat!(
//!     "\u{1e}{\"qlog_version\":\"0.3\",\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n",
//!     "\u{1e}{\"time\":0,\"name\":\"transport:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"initial\"}}}\n",
//!     "\u{1e}{\"time\":50,\"name\":\"transport:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"1RTT\"}}}\n",
//! );
//! let explanation = Explanation::of(Reader::new(trace.as_bytes())?);
//! assert_eq!(explanation.first_cause(), Some(Cause::Handshake));
//! assert!(sentences(&explanation).join("\n").contains("the handshake took 50.0 ms"));
//! # Ok::<(), courser_trace::qlog::ReadError>(())
//! ```
//!
//! This crate implements `courser qlog`: [`QlogCommand`] defines its flags, and [`run`] executes it.

mod args;
mod charts;
mod compare;
mod convert;
mod document;
mod error;
pub mod explain;
mod file;
mod merge;
pub mod qlog;
mod remote;
mod run;
mod stats;
mod tail;
mod text;

pub use self::args::QlogCommand;
pub use self::charts::{Trace, TraceChart};
pub use self::compare::{ComparedTrace, Comparison, Divergence, Figure};
pub use self::error::Error;
pub use self::run::{Console, render, run};
pub use self::stats::{DirectionStats, Distribution, Stats};
