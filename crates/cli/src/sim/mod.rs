//! Networks made in software: `courser sim`.

mod report;
mod run;

use clap::Subcommand;

use crate::error::Failure;
use run::RunArguments;

#[derive(Subcommand, Debug)]
pub(crate) enum SimCommand {
    /// Runs scenarios in a simulated network and checks their bounds.
    Run(Box<RunArguments>),
}

pub(crate) fn main(command: &SimCommand) -> Result<(), Failure> {
    match command {
        SimCommand::Run(arguments) => run::main(arguments),
    }
}
