//! msquic as a peer: `peer-msquic server|client`.

mod client;
mod server;

use clap::Parser;
use peer_msquic::setup;
use peers_common::command_line::{CommandLine, Role};
use peers_common::{Failure, print, version_in, workloads};

fn main() -> Result<(), Failure> {
    setup::use_one_worker()?;
    match CommandLine::parse().role {
        Role::Server(options) => print(&server::serve(&options)?)?,
        Role::Client(options) => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let client = client::Client::new(&options)?;
            let version = version_in(include_str!("../../../Cargo.lock"), "msquic");
            runtime.block_on(workloads::run(&client, &options, version))?;
            client.wait_for_the_end();
        }
    }
    Ok(())
}
