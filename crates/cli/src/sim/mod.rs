//! Networks made in software: `courser sim`.

mod figures;
mod proxy;
mod report;
mod run;

use clap::Subcommand;

use crate::error::Failure;
use figures::FiguresArguments;
use proxy::ProxyArguments;
use run::RunArguments;

#[derive(Subcommand, Debug)]
pub(crate) enum SimCommand {
    /// Runs scenarios in a simulated network and checks their bounds.
    Run(Box<RunArguments>),
    /// Measures figures in many scenarios and writes a document about them.
    Figures(Box<FiguresArguments>),
    /// Stands between UDP programs and treats their datagrams as a link would.
    Proxy(Box<ProxyArguments>),
}

pub(crate) fn main(command: &SimCommand) -> Result<(), Failure> {
    match command {
        SimCommand::Run(arguments) => run::main(arguments),
        SimCommand::Figures(arguments) => figures::main(arguments),
        SimCommand::Proxy(arguments) => proxy::main(arguments),
    }
}
