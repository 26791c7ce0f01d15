//! `nat-witness noq` connects courser and noq in both roles. `nat-witness ROLE FOLDER ADDRESS HUB` is one end of a trial with
//! NATs of the kernel, which `run` sets up: `hub` (relay and observer), `server` or `client`. `nat-witness identity FOLDER` makes
//! the certificate of both.

mod noq_pair;
mod trial;

use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use courser::{AddressObservations, TransportConfig};

/// The settings of an end that looks for direct paths.
fn transport(address_observations: AddressObservations) -> TransportConfig {
    TransportConfig {
        max_paths: 4,
        max_candidates: 8,
        address_observations,
        ..TransportConfig::default()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize| arguments.get(at).context("an argument is missing");
    let address = |at| -> Result<IpAddr> { Ok(argument(at)?.parse()?) };
    let folder = || -> Result<&Path> { Ok(Path::new(argument(1)?)) };
    match argument(0)?.as_str() {
        "noq" => noq_pair::run().await,
        "identity" => trial::write_identity(folder()?),
        "hub" => trial::hub(folder()?, address(2)?).await,
        "server" => trial::server(folder()?, address(2)?, address(3)?).await,
        "client" => trial::client(folder()?, address(2)?, address(3)?).await,
        other => bail!("unknown role {other}"),
    }
}
