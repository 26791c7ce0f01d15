//! Emulated networks: `courser sim`.

pub(crate) mod figures;
mod file;
mod pages;
mod parallel;
mod proxy;
mod run;
mod spread;
mod verdict;

use clap::Subcommand;

use crate::error::Failure;
use figures::FiguresArguments;
use proxy::ProxyArguments;
use run::RunArguments;

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum SimCommand {
    /// Run scenarios in virtual time and check their bounds
    Run(Box<RunArguments>),
    /// Measure many scenarios and write a document of the results
    Figures(Box<FiguresArguments>),
    /// Forward UDP datagrams between real programs as a slow or lossy link would
    Proxy(Box<ProxyArguments>),
}

const EXAMPLES: &str = "\
Examples:
  courser sim run scenarios/bufferbloat.toml
      Run a scenario and check its bounds
  courser sim proxy --listen 127.0.0.1:4434 --to 127.0.0.1:4433 --link 20mbit,40ms,1%
      Put a slow and lossy link in front of a server";

pub(crate) fn main(command: &SimCommand) -> Result<(), Failure> {
    match command {
        SimCommand::Run(arguments) => run::main(arguments),
        SimCommand::Figures(arguments) => figures::main(arguments),
        SimCommand::Proxy(arguments) => proxy::main(arguments),
    }
}
