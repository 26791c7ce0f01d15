//! The command line of `courser sim run`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use courser::Algorithm;

use crate::values::parse_controller;

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArguments {
    /// Scenario files (.toml), or directories of them
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,

    /// Run only the scenario with this name
    #[arg(long, value_name = "NAME")]
    pub(super) only: Option<String>,

    /// Seed of the first run; a seed reproduces its run on every machine
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// Runs of each scenario, with consecutive seeds
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(super) runs: u64,

    /// Number of parallel runs [default: one per core]
    #[arg(long, value_name = "N")]
    pub(super) jobs: Option<NonZeroUsize>,

    /// Congestion control algorithm of all flows [default: as in the scenario]
    #[arg(long, value_name = "NAME", value_parser = parse_controller)]
    pub(super) cc: Option<Algorithm>,

    /// Write an HTML report with charts to this directory
    #[arg(long, value_name = "DIR")]
    pub(super) report: Option<PathBuf>,

    /// Replace the bounds of scenarios by those in this TOML file
    ///
    /// The file has one table for each scenario, by name.
    #[arg(long, value_name = "FILE")]
    pub(super) bounds: Option<PathBuf>,

    /// Write a qlog trace of both ends of every connection to this directory
    #[arg(long, value_name = "DIR")]
    pub(super) qlog: Option<PathBuf>,

    /// Print results as JSON
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  courser sim run scenarios/bufferbloat.toml
      Run a scenario and check its bounds
  courser sim run scenarios --runs 20 --cc bbr
      Run all scenarios 20 times each, with BBR
  courser sim run scenarios/bufferbloat.toml --report report --qlog traces
      Write charts and traces";
