//! Other servers of files, and proxies, as peers: `peer-installed server`.
//!
//! Writes the configuration of a program that is installed, runs it until standard input ends, and
//! prints what the runner wants to know about it. A proxy has its origin in this program.

mod configuration;
mod origin;
mod probe;
mod software;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use peers::installed::{Protocol, Software};
use peers::{Failure, Ready, standard_input};

use software::Running;

/// One server of files, or one proxy.
#[derive(Debug, Parser)]
struct CommandLine {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Serves until standard input ends.
    Server(Options),
}

/// Options of a server.
#[derive(Clone, Debug, Args)]
struct Options {
    /// Folder with the certificate; the configuration is written there too.
    #[arg(long)]
    identity: PathBuf,
    /// Folder to serve.
    #[arg(
        long,
        required_unless_present = "origin_core",
        conflicts_with = "origin_core"
    )]
    folder: Option<PathBuf>,
    /// Forward requests to an origin that runs on this core.
    #[arg(long, requires = "response_size")]
    origin_core: Option<usize>,
    /// Bytes of each response of the origin.
    #[arg(long, requires = "origin_core")]
    response_size: Option<u64>,
    /// Kind of server.
    #[arg(long)]
    software: Software,
    /// Program of the server.
    #[arg(long)]
    program: PathBuf,
    /// Version of HTTP.
    #[arg(long)]
    protocol: Protocol,
    /// Requests that a client may have in flight on one connection.
    #[arg(long, default_value_t = 100)]
    streams: u32,
}

fn main() -> Result<(), Failure> {
    let Role::Server(options) = CommandLine::parse().role;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(&options))
}

async fn serve(options: &Options) -> Result<(), Failure> {
    let version = match options.software {
        Software::Courser => peers::locked_version("courser"),
        software => software.ask(&options.program)?.version,
    };
    let address = free_address()?;
    let mut running = Running::start(options, address)?;
    running.wait_until_it_answers().await?;
    peers::print(&Ready { listening: address })?;
    standard_input::closed().await;
    peers::print(&running.end(version)?)?;
    Ok(())
}

/// Returns an address whose port is free over TCP and UDP. Another process may take it before the
/// server does, which then fails.
fn free_address() -> Result<SocketAddr, Failure> {
    for _ in 0..PORT_ATTEMPTS {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        if UdpSocket::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err("no port is free over TCP and UDP".into())
}

const PORT_ATTEMPTS: u32 = 100;
