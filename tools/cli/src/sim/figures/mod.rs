//! `courser sim figures`: a Markdown document of what scenarios measured, and the measuring itself.
//!
//! A [`List`](list::List) names the rows of the document: a target, the scenarios that it is about, and the measures
//! to show. [`measure`] runs the scenarios of a row and keeps their numbers in a file, so that rows can be
//! measured one by one. [`charts`] draws the charts, and [`document`] writes the text.

mod charts;
mod data;
mod document;
mod file;
mod list;
mod measure;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use courser_sim::scenario::Scenario;

use self::data::Number;
pub(crate) use self::data::{Data, Numbers};
pub(crate) use self::list::parse;
use self::measure::Measurement;
use crate::error::Failure;
use crate::output;
use crate::sim::error::Error;

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FiguresArguments {
    /// TOML file that lists the rows of the document: titles, targets, scenario files
    #[arg(value_name = "LIST")]
    list: PathBuf,

    /// Measure this row first, or all; repeatable
    #[arg(long, value_name = "ROW")]
    measure: Vec<String>,

    /// Runs of each scenario [default: as in the list]
    #[arg(long, value_name = "N", requires = "measure",
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    runs: Option<u64>,

    /// Measure only scenarios whose names contain this text
    #[arg(long, value_name = "TEXT", requires = "measure")]
    only: Option<String>,

    /// Number of parallel runs [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Draw the charts of the document again
    #[arg(long)]
    charts: bool,

    /// Write the document to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  courser sim figures docs/congestion.toml -o docs/CONGESTION.md
      Write the document from earlier measurements
  courser sim figures docs/congestion.toml --measure all --charts -o docs/CONGESTION.md
      Measure everything again";

pub(crate) fn main(arguments: &FiguresArguments) -> Result<(), Failure> {
    let failed = |error: Error| Failure::new(error.to_string());
    let list = list::read(&arguments.list).map_err(failed)?;
    let repetition = Measurement {
        runs: arguments.runs,
        only: arguments.only.as_deref(),
        threads: arguments.jobs,
    };
    for row in list.select(&arguments.measure).map_err(failed)? {
        measure::row(&repetition, &list, row, note).map_err(failed)?;
    }
    if arguments.charts {
        charts::draw(&list).map_err(failed)?;
    }
    let Some(path) = &arguments.output else {
        return Ok(());
    };
    document::write(&list, path, &command(arguments)).map_err(failed)?;
    output::note(format!("wrote {}", path.display()));
    Ok(())
}

/// Prints the results of a scenario while others run.
fn note(scenario: &Scenario, numbers: &Numbers, took: Duration) {
    let of = |(name, number): (&String, &Number)| {
        let holds = match &number.bound {
            Some((_, false)) => " (!)",
            _ => "",
        };
        format!("{name} {:.4}{holds}", number.median)
    };
    let numbers: Vec<String> = numbers.iter().map(of).collect();
    let (name, seconds) = (&scenario.name, took.as_secs_f64());
    output::note(format!("{name}: {} [{seconds:.1} s]", numbers.join(", ")));
}

/// Returns the command that measures everything again.
fn command(arguments: &FiguresArguments) -> String {
    let path = |path: &Path| path.display().to_string();
    let output = arguments.output.as_deref().map(path).unwrap_or_default();
    let list = path(&arguments.list);
    format!("courser sim figures {list} --measure all --charts --output {output}")
}
