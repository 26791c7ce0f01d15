//! The command line of `courser sim figures`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FiguresArguments {
    /// TOML file that lists the rows of the document: titles, targets, scenario files
    #[arg(value_name = "LIST")]
    pub(super) list: PathBuf,

    /// Measure this row first, or all; repeatable
    #[arg(long, value_name = "ROW")]
    pub(super) measure: Vec<String>,

    /// Runs of each scenario [default: as in the list]
    #[arg(long, value_name = "N", requires = "measure",
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(super) runs: Option<u64>,

    /// Measure only scenarios whose names contain this text
    #[arg(long, value_name = "TEXT", requires = "measure")]
    pub(super) only: Option<String>,

    /// Number of parallel runs [default: one per core]
    #[arg(long, value_name = "N")]
    pub(super) jobs: Option<NonZeroUsize>,

    /// Draw the charts of the document again
    #[arg(long)]
    pub(super) charts: bool,

    /// Write the document to this file
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  courser sim figures docs/congestion.toml -o docs/CONGESTION.md
      Write the document from earlier measurements
  courser sim figures docs/congestion.toml --measure all --charts -o docs/CONGESTION.md
      Measure everything again";
