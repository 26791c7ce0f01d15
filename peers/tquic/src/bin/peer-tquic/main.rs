//! tquic as a peer: `peer-tquic server|client`.

mod client;
mod server;

use clap::Parser;
use peer_tquic::setup;
use peers_common::command_line::{CommandLine, Role};
use peers_common::{Failure, print, version_in};

fn main() -> Result<(), Failure> {
    let command_line = CommandLine::parse();
    setup::check_suite()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match command_line.role {
            Role::Server(options) => print(&server::serve(&options).await?)?,
            Role::Client(options) => {
                let version = version_in(include_str!("../../../Cargo.lock"), "tquic");
                client::work(&options, version).await?;
            }
        }
        Ok(())
    })
}
