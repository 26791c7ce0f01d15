//! Networks made in software: `courser sim`.

mod proxy;

use clap::Subcommand;

use crate::error::Failure;
use proxy::ProxyArguments;

#[derive(Subcommand, Debug)]
pub(crate) enum SimCommand {
    /// Stands between UDP programs and treats their datagrams as a link would.
    Proxy(Box<ProxyArguments>),
}

pub(crate) fn main(command: &SimCommand) -> Result<(), Failure> {
    match command {
        SimCommand::Proxy(arguments) => proxy::main(arguments),
    }
}
