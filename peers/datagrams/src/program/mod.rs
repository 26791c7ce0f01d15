//! Both ends of both programs, written once and compiled against each library.
//!
//! The crate that includes this folder has the library under the name `courser`, and a module `stack` with endpoints.

mod results;
mod voice;
mod vpn;

#[allow(dead_code, unreachable_pub, reason = "a file of the example")]
#[path = "../../../../examples/vpn/packets.rs"]
mod packets;
#[allow(unreachable_pub, reason = "a file of the example")]
#[path = "../../../../examples/vpn/tunnel.rs"]
mod tunnel;

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use courser::VarInt;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use peers_common::{Failure, Ready, standard_input};

use crate::stack;

#[allow(unused_imports, reason = "only the crate of the runner reads them")]
pub(crate) use results::{Began, Client, Counts, Server};

/// The command line of an end.
#[derive(Clone, Debug, Parser)]
struct Options {
    program: Program,
    role: Role,
    /// The address of the server: to listen on, or to connect to.
    address: SocketAddr,
    /// The folder of the certificate.
    #[arg(long)]
    identity: PathBuf,
    /// The core of this process.
    #[arg(long)]
    core: Option<usize>,
    /// The time of the load in seconds.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Packets in a millisecond through the tunnel; as many as it takes without.
    #[arg(long)]
    rate: Option<u32>,
    /// A stream beside the voices.
    #[arg(long)]
    bulk: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Program {
    Vpn,
    Voice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    Server,
    Client,
}

/// Runs the end that the arguments describe, on one thread.
///
/// # Errors
/// Returns the error of the end.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<(), Failure> {
    let options = Options::parse_from(arguments);
    if let Some(core) = options.core {
        let mut only = CpuSet::new();
        only.set(core)?;
        sched_setaffinity(Pid::from_raw(0), &only)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // In a task: the future of `block_on` is polled only once in 61 polls of the tasks that are ready.
    runtime.block_on(async {
        tokio::spawn(async move {
            match options.role {
                Role::Server => serve(&options).await,
                Role::Client => connect(&options).await,
            }
        })
        .await?
    })
}

/// Serves one client.
async fn serve(options: &Options) -> Result<(), Failure> {
    let endpoint: stack::Endpoints = stack::server(options.address, &options.identity, ALPN)?;
    peers_common::print(&Ready {
        listening: endpoint.local_addr()?,
    })?;
    let session = async {
        let connection = stack::accept(&endpoint).await?;
        Ok::<_, Failure>(match options.program {
            Program::Vpn => vpn::far(connection).await,
            Program::Voice => voice::listen(connection).await,
        })
    };
    tokio::select! {
        result = session => peers_common::print(&result?)?,
        () = standard_input::closed() => {}
    }
    Ok(())
}

async fn connect(options: &Options) -> Result<(), Failure> {
    let local = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let (endpoint, connection) =
        stack::connect(local, options.address, &options.identity, ALPN).await?;
    let result = match options.program {
        Program::Vpn => vpn::near(&connection, options).await?,
        Program::Voice => voice::speak(&connection, options).await?,
    };
    connection.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    Ok(peers_common::print(&result)?)
}

/// Returns microseconds of a clock that all processes share.
fn now_us() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |time| time.tv_sec() * 1_000_000 + time.tv_nsec() / 1000);
    u64::try_from(time).unwrap_or(0)
}

const ALPN: &[u8] = b"datagrams";
