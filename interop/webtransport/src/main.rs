//! `webtransport-witness server LIBRARY CERTIFICATE KEY` prints its address; with courser also a second one, which
//! accepts pages of its own host only. `webtransport-witness client LIBRARY ADDRESS [CASE..]` prints a line for each case.

mod cases;
mod end;
mod own;
mod serve;
mod web_transport_quinn;
mod wtransport;

use anyhow::{Context, Result, bail};

#[tokio::main]
async fn main() -> Result<()> {
    // Several libraries bring a provider of cryptography each.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["server", library, certificate, key] => {
            let files = (*certificate, *key);
            match *library {
                "courser" => own::serve(files).await,
                "wtransport" => wtransport::serve(files).await,
                "web-transport-quinn" => web_transport_quinn::serve(files).await,
                other => bail!("unknown library {other}"),
            }
        }
        ["client", library, address, only @ ..] => {
            let port = address.parse().context("a port")?;
            match *library {
                "courser" => cases::run(&own::Connector::new(port), only).await,
                "wtransport" => cases::run(&wtransport::Connector::new(port), only).await,
                "web-transport-quinn" => {
                    cases::run(&web_transport_quinn::Connector::new(port), only).await
                }
                other => bail!("unknown library {other}"),
            }
        }
        _ => bail!("server LIBRARY CERTIFICATE KEY, or client LIBRARY PORT [CASE..]"),
    }
}
