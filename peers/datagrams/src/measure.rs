//! One measurement: a fresh network, a server and a client.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use peers_common::{Failure, Ready};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::network::{Network, SERVER};
use crate::program::{Began, Client, Server};
use crate::scenarios::{Narrowing, Scenario};

/// A library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stack {
    Courser,
    Quinn,
}

/// What both ends saw.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Measurement {
    pub(crate) client: Client,
    pub(crate) server: Server,
    pub(crate) began_us: u64,
    /// Datagrams lost to the emulator itself.
    pub(crate) mishaps: u64,
}

/// Measures a stack in a scenario. Random decisions are those of the pair.
pub(crate) fn run(
    scenario: Scenario,
    stack: Stack,
    seconds: f64,
    identity: &Path,
    pair: usize,
) -> Result<Measurement, Failure> {
    let network = Network::new()?;
    if scenario.narrowing() == Some(Narrowing::Silent) {
        network.silence()?;
    }
    let end = End {
        scenario,
        stack,
        seconds,
        identity,
    };
    let start = |role: &str, address: &str, core: usize| {
        let mut command = end.command(role, address, core)?;
        let namespace = match role {
            "server" => &network.server,
            _ => &network.client,
        };
        Process::start(namespace.inside(|| command.spawn())??)
    };
    let mut server = start("server", &format!("{SERVER}:0"), 0)?;
    let listening = server.line::<Ready>()?.listening;
    let seed = pair as u64 + 1;
    let link = scenario
        .emulated(seconds)
        .map(|link| network.emulate(&link, listening, seed))
        .transpose()?;
    let address = link.as_ref().map_or(listening, |link| link.address);
    let mut client = start("client", &address.to_string(), 1)?;
    let began_us = client.line::<Began>()?.began_us;
    if let Some(Narrowing::Reported | Narrowing::Silent) = scenario.narrowing() {
        thread::sleep(Duration::from_secs_f64(seconds * NARROWED_AFTER));
        network.narrow(NARROW)?;
    }
    Ok(Measurement {
        client: client.line()?,
        server: server.line()?,
        began_us,
        mishaps: link.map_or(Ok(0), |link| link.finish())?,
    })
}

impl Scenario {
    /// The link, which becomes narrow by itself. The load begins two seconds after the client.
    fn emulated(self, seconds: f64) -> Option<String> {
        let link = self.link()?;
        Some(match self.narrowing() {
            Some(Narrowing::OfLink) => {
                let at = 2.0 + seconds * NARROWED_AFTER;
                format!("{link},mtu@{:.0}ms={NARROW}", at * 1e3)
            }
            _ => link.to_owned(),
        })
    }
}

/// The settings of both ends.
struct End<'a> {
    scenario: Scenario,
    stack: Stack,
    seconds: f64,
    identity: &'a Path,
}

impl End<'_> {
    fn command(&self, role: &str, address: &str, core: usize) -> Result<Command, Failure> {
        let scenario = self.scenario;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(match self.stack {
            Stack::Courser => "end-courser",
            Stack::Quinn => "end-quinn",
        });
        command.arg(if scenario.is_voice() { "voice" } else { "vpn" });
        command.args([role, address, "--seconds", &self.seconds.to_string()]);
        command.arg("--identity").arg(self.identity);
        // Both ends share the only core of small machines.
        let cores = thread::available_parallelism()?.get();
        command.args(["--core", &core.min(cores - 1).to_string()]);
        if let Some(rate) = scenario.rate().filter(|_| !scenario.is_voice()) {
            command.args(["--rate", &rate.to_string()]);
        }
        if scenario.has_bulk() {
            command.arg("--bulk");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Ok(command)
    }
}

/// A process, which ends when this is dropped.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(mut child: Child) -> Result<Self, Failure> {
        let output = child.stdout.take().ok_or("no standard output")?;
        let lines = BufReader::new(output).lines();
        Ok(Self { child, lines })
    }

    fn line<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        let line = self.lines.next().ok_or("an end failed")??;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The share of the load after which the path becomes narrow, and its size then.
pub(crate) const NARROWED_AFTER: f64 = 0.25;
const NARROW: u32 = 1300;
