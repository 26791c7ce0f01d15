//! A link in the way: `courser sim proxy` between the ends of a measurement.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use peers::Failure;
use serde::{Deserialize, Serialize};

use super::child::Program;
use super::plan::Plan;
use super::registry;

/// A proxy under way.
#[derive(Debug)]
pub(crate) struct Proxy {
    program: Program,
    address: SocketAddr,
}

impl Proxy {
    /// Starts one towards `server`. What chance does is the same for every stack of a pair, and
    /// another in every pair.
    pub(crate) fn start(
        plan: &Plan,
        link: &str,
        server: SocketAddr,
        pair: usize,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(program()?);
        command.args(["sim", "proxy", "--json", "--listen", "127.0.0.1:0"]);
        command.args(["--to", &server.to_string(), "--link", link]);
        command.args(["--seed", &(pair + 1).to_string()]);
        let program = Program::start("proxy", command, plan.proxy_core)?;
        let listening: Listening = program.line(TIMEOUT)?;
        Ok(Self {
            program,
            address: listening.address,
        })
    }

    /// Returns the address of the server for clients.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it; it tells what it counted.
    pub(crate) fn finish(self) -> Result<LinkReport, Failure> {
        self.program.terminate()?;
        let report = self.program.line(TIMEOUT)?;
        self.program.finish()?;
        Ok(report)
    }
}

/// The binary that has the proxy.
///
/// # Errors
/// When it is not there.
pub(crate) fn program() -> Result<PathBuf, Failure> {
    let program = registry::courser()?;
    if program.is_file() {
        return Ok(program);
    }
    let folder = program.parent().unwrap_or(&program).display();
    Err(format!("--link needs the program courser in {folder}: run without --no-build").into())
}

/// The first line of the proxy.
#[derive(Deserialize)]
struct Listening {
    address: SocketAddr,
}

/// The counts of the proxy that matter here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LinkReport {
    /// The link, in the grammar of the proxy.
    pub(crate) link: String,
    pub(crate) cpu_seconds: f64,
    /// Buffers that the kernel dropped before the proxy took them.
    pub(crate) kernel_drops: u64,
    pub(crate) there: Way,
    pub(crate) back: Way,
}

/// One direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Way {
    pub(crate) packets_in: u64,
    /// By the link: losses, a full queue and all other effects.
    pub(crate) dropped_total: u64,
    /// Datagrams that the system did not take.
    pub(crate) unsent: u64,
    pub(crate) queue_delay: Delays,
    /// Delays of packets beyond those of the link.
    pub(crate) lateness: Delays,
}

/// Delays of the packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Delays {
    pub(crate) median_seconds: f64,
    pub(crate) p99_seconds: f64,
    pub(crate) max_seconds: f64,
}

impl LinkReport {
    /// Packets that were lost in the emulator and not by the link: with any, a measurement says
    /// nothing about the link.
    pub(crate) fn mishaps(&self) -> u64 {
        self.kernel_drops + self.there.unsent + self.back.unsent
    }

    /// The later direction's 99th of 100 packets, in milliseconds.
    pub(crate) fn late_p99_ms(&self) -> f64 {
        let late = self.there.lateness.p99_seconds;
        late.max(self.back.lateness.p99_seconds) * 1e3
    }
}

/// The proxy listens, and ends, at once.
const TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_the_emulator_are_told_from_those_of_the_link() {
        let mut report = LinkReport::default();
        report.there.dropped_total = 7;
        assert_eq!(report.mishaps(), 0);
        report.kernel_drops = 2;
        report.back.unsent = 1;
        assert_eq!(report.mishaps(), 3);
    }

    #[test]
    fn lateness_is_that_of_the_worse_direction() {
        let mut report = LinkReport::default();
        report.there.lateness.p99_seconds = 0.000_25;
        report.back.lateness.p99_seconds = 0.001;
        assert!((report.late_p99_ms() - 1.0).abs() < 1e-9);
    }
}
