//! Scenarios of the simulator run many times, and what came of them.
//!
//! - [`scenarios`] reads scenarios from files, runs each with many seeds on several threads, and judges the
//!   runs by the bounds of the scenario. The results are written as JSON, or as HTML pages.
//! - [`pages`] makes the HTML pages: tables of measures, and charts of the median and the worst run.
//! - [`figures`] measures long lists of scenarios row by row and writes a Markdown document of them, such as
//!   `docs/CONGESTION.md`.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use courser_report::scenarios::{Repetition, Selection, outcomes, read, run_all, write_report};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let files = ["scenarios/bufferbloat.toml".into()];
//! let sources = read(&Selection {
//!     files: &files,
//!     only: None,
//!     controller: None,
//!     bounds: None,
//! })?;
//! let repetition = Repetition {
//!     seed: 1,
//!     runs: 20,
//!     threads: None,
//!     traces: None,
//! };
//! let runs = run_all(&repetition, &sources, |_| {})?;
//! write_report(Path::new("report"), &runs, &outcomes(&sources, &runs))?;
//! # Ok(())
//! # }
//! ```
//!
//! Runs are reproducible: the same scenario and seed give the same report on every machine, whatever the
//! number of threads.

mod error;
pub mod figures;
pub mod pages;
pub mod scenarios;

pub use self::error::Error;
