//! One measurement: a fresh server, a fresh client, and what they used.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;
use peers::process::CpuTime;
use peers::{ClientResult, Failure, Ready, ServerResult, identity};
use serde::Serialize;

use super::child::Program;
use super::files;
use super::host::{CoreTimes, Disturbance};
use super::link::{LinkReport, Proxy};
use super::load::{self, LoadReport};
use super::plan::{Family, Plan, Workload};
use super::registry::{Client, Stack};

/// The results and the resources of one pair of processes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measurement {
    pub(crate) pair: usize,
    pub(crate) workload: Workload,
    pub(crate) stack: String,
    pub(crate) client: ClientResult,
    pub(crate) server: ServerResult,
    pub(crate) client_cpu: CpuTime,
    pub(crate) server_cpu: CpuTime,
    pub(crate) disturbance: Disturbance,
    /// The counts of the link, if there is one.
    pub(crate) link: Option<LinkReport>,
}

impl Measurement {
    /// True when other load makes the figures worth little. A link sets the pace of what goes
    /// through it; there the emulator's own drops and lateness tell.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.link.is_none() && self.disturbance.is_too_much()
    }

    /// Packets lost in the emulator, not by the link.
    fn mishaps(&self) -> u64 {
        self.link.as_ref().map_or(0, LinkReport::mishaps)
    }

    /// Gbit/s of a transfer, operations a second of anything else.
    pub(crate) fn speed(&self) -> f64 {
        self.work() / self.client.seconds
            * if self.workload.is_transfer() {
                8.0
            } else {
                1.0
            }
    }

    /// CPU of `used`: seconds a GB of a transfer, microseconds an operation of anything else.
    pub(crate) fn cost(&self, used: CpuTime) -> f64 {
        used.total() / self.work()
            * if self.workload.is_transfer() {
                1.0
            } else {
                1e6
            }
    }

    /// GB or operations.
    fn work(&self) -> f64 {
        if self.workload.is_transfer() {
            self.client.bytes as f64 / 1e9
        } else {
            self.client.count as f64
        }
    }
}

/// Makes measurements by one plan.
#[derive(Debug)]
pub(crate) struct Measurer<'a> {
    plan: &'a Plan,
    identity: Identity,
    failures: usize,
    discarded: usize,
}

impl<'a> Measurer<'a> {
    /// Makes the certificate of the run, and the files that its workloads take.
    pub(crate) fn new(plan: &'a Plan) -> Result<Self, Failure> {
        let identity = Identity::new()?;
        files::write(plan, &identity.folder)?;
        Ok(Self {
            plan,
            identity,
            failures: 0,
            discarded: 0,
        })
    }

    /// Measurements that came to no end.
    pub(crate) fn failures(&self) -> usize {
        self.failures
    }

    /// Measurements that were thrown away, since the emulator itself lost packets.
    pub(crate) fn discarded(&self) -> usize {
        self.discarded
    }

    /// Measures, and measures again as long as the machine was disturbed and the plan allows it.
    pub(crate) fn measure(
        &mut self,
        stack: &Stack,
        workload: Workload,
        pair: usize,
    ) -> Result<Measurement, Failure> {
        let mut retries = self.plan.retries;
        loop {
            match self.attempt(stack, workload, pair) {
                Ok(measurement) if measurement.mishaps() > 0 => {
                    self.discarded += 1;
                    let lost = measurement.mishaps();
                    eprintln!("peers: pair {pair} {workload} discarded: the proxy lost {lost}");
                    if retries == 0 {
                        self.failures += 1;
                        return Err(format!("the proxy lost {lost} packets or buffers").into());
                    }
                    retries -= 1;
                }
                Ok(measurement) if measurement.is_disturbed() && retries > 0 => {
                    retries -= 1;
                }
                Ok(measurement) => return Ok(measurement),
                Err(failure) => {
                    self.failures += 1;
                    return Err(failure);
                }
            }
        }
    }

    fn attempt(
        &self,
        stack: &Stack,
        workload: Workload,
        pair: usize,
    ) -> Result<Measurement, Failure> {
        let plan = self.plan;
        let cores = [plan.server_core, plan.client_core];
        let before = CoreTimes::now(&cores)?;

        let command = self.server(stack, workload);
        let mut server = Program::start("server", command, Some(plan.server_core))?;
        let ready: Ready = server.line(SERVER_TIMEOUT)?;
        let proxy = match &plan.link {
            Some(link) => Some(Proxy::start(plan, link, ready.listening, pair)?),
            None => None,
        };
        let entrance = proxy.as_ref().map_or(ready.listening, Proxy::address);
        let command = self.client(stack, workload, entrance);
        let client = Program::start("client", command, Some(plan.client_core))?;
        let timeout = Duration::from_secs(plan.timeout);
        let client_result = match &stack.client {
            Client::Peer(_) => client.line::<ClientResult>(timeout)?,
            Client::Load { .. } => client.line::<LoadReport>(timeout)?.result()?,
        };
        let client_cpu = client.finish()?;
        server.close_stdin();
        let server_result: ServerResult = server.line(SERVER_TIMEOUT)?;
        let server_cpu = server.finish()?;

        let link = proxy.map(Proxy::finish).transpose()?;

        let proxy_cpu = link.as_ref().map_or(0.0, |link| link.cpu_seconds);
        let own = client_cpu.total() + server_cpu.total() + proxy_cpu;
        let disturbance = CoreTimes::now(&cores)?.disturbance_since(&before, own);
        // A program that runs the server itself used time of its own besides.
        let server_cpu = server_result.cpu.unwrap_or(server_cpu);
        check(plan, workload, &client_result, &server_result)?;
        Ok(Measurement {
            pair,
            workload,
            stack: stack.name.clone(),
            client: client_result,
            server: server_result,
            client_cpu,
            server_cpu,
            disturbance,
            link,
        })
    }

    fn server(&self, stack: &Stack, workload: Workload) -> Command {
        // A slot of a stream comes free with an acknowledgement only: grant well above what is
        // in flight.
        let streams = (workload.in_flight() * 4).max(100);
        let folder = &self.identity.folder;
        let mut command = Command::new(&stack.server);
        command.arg("server").arg("--identity").arg(folder);
        command.args(["--streams", &streams.to_string()]);
        command.args(&stack.server_arguments);
        match stack.family {
            Family::Perf | Family::Http => command.args(self.plan.transport.arguments()),
            // As they are installed.
            Family::Files => command.arg("--folder").arg(files::root(folder)),
        };
        command
    }

    fn client(&self, stack: &Stack, workload: Workload, server: SocketAddr) -> Command {
        let scenario = workload.scenario();
        let program = match &stack.client {
            Client::Peer(program) => program,
            Client::Load { program, protocol } => {
                let folder = &self.identity.folder;
                let mut command = load::command(program, *protocol, folder, server);
                command.args(load::work(self.plan, workload, *protocol, folder));
                return command;
            }
        };
        let mut command = Command::new(program);
        command
            .arg("client")
            .arg("--identity")
            .arg(&self.identity.folder);
        command.args(["--server", &server.to_string()]);
        if let Some(value) = scenario.to_possible_value() {
            command.args(["--scenario", value.get_name()]);
        }
        command.args(self.plan.transport.arguments());
        match workload {
            Workload::Up | Workload::Down => {
                command.args(["--bytes", &self.plan.bytes().to_string()]);
            }
            Workload::Handshake => {
                command.args(["--count", &self.plan.handshakes.to_string()]);
            }
            Workload::Requests { in_flight } => {
                command.args(["--count", &self.plan.requests.to_string()]);
                command.args(["--in-flight", &in_flight.to_string()]);
            }
            Workload::Http {
                in_flight,
                connections,
            } => {
                command.args(["--count", &self.plan.requests.to_string()]);
                command.args(["--bytes", &self.plan.response_size.to_string()]);
                command.args(["--in-flight", &in_flight.to_string()]);
                command.args(["--connections", &connections.to_string()]);
            }
            Workload::HttpDown => {
                command.args(["--count", "1"]);
                command.args(["--bytes", &self.plan.bytes().to_string()]);
            }
            // `courser load` is the client of all servers of files.
            Workload::Files { .. } => {}
        }
        command
    }
}

/// Both ends must tell the same story.
fn check(
    plan: &Plan,
    workload: Workload,
    client: &ClientResult,
    server: &ServerResult,
) -> Result<(), Failure> {
    let agrees = match workload {
        Workload::Up => server.received == client.bytes && server.answers == 1,
        Workload::Down => server.sent == client.bytes && server.answers == 1,
        // The last one may still be on its way when the server is told to end.
        Workload::Handshake => server.connections + 1 >= client.count,
        Workload::Requests { .. } => server.answers == client.count && server.sent == client.count,
        Workload::Http { .. } | Workload::HttpDown => {
            server.answers == client.count && server.sent == client.bytes
        }
        // Most servers count nothing; the client has to have what it asked for.
        Workload::Files { .. } => {
            client.count == plan.requests
                && client.bytes == plan.requests.saturating_mul(plan.file_size)
                && (server.is_uncounted || server.answers == client.count)
        }
    };
    if agrees {
        Ok(())
    } else {
        Err(format!("ends disagree: {client:?}, {server:?}").into())
    }
}

/// A folder with the certificate, for the time of the run.
#[derive(Debug)]
struct Identity {
    folder: PathBuf,
}

impl Identity {
    fn new() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("peers-{}", std::process::id()));
        std::fs::create_dir(&folder)?;
        let identity = Self { folder };
        identity::generate(&identity.folder)?;
        Ok(identity)
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        // What is left over is in a folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A server listens and ends at once, or something is wrong with it.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use clap::Parser;
    use peers::command_line::Scenario;

    use super::*;

    fn measurement(workload: Workload) -> Measurement {
        Measurement {
            pair: 0,
            workload,
            stack: "a".to_owned(),
            client: ClientResult {
                version: "1".to_owned(),
                scenario: workload.scenario(),
                bytes: 2_000_000_000,
                count: 500,
                seconds: 4.0,
                latency: None,
                peak_rss_kib: 1,
                path: None,
            },
            server: ServerResult {
                version: String::new(),
                connections: 1,
                answers: 1,
                received: 2_000_000_000,
                sent: 0,
                peak_rss_kib: 1,
                path: None,
                is_uncounted: false,
                cpu: None,
            },
            client_cpu: CpuTime {
                user: 1.0,
                system: 0.5,
            },
            server_cpu: CpuTime::default(),
            disturbance: Disturbance::default(),
            link: None,
        }
    }

    #[test]
    fn a_transfer_is_measured_in_bytes() {
        let measurement = measurement(Workload::Up);
        assert!((measurement.speed() - 4.0).abs() < 1e-9);
        assert!((measurement.cost(measurement.client_cpu) - 0.75).abs() < 1e-9);
    }

    #[test]
    fn other_load_disturbs_only_without_a_link() {
        let mut measurement = measurement(Workload::Up);
        measurement.disturbance.foreign = 0.5;
        assert!(measurement.is_disturbed());
        measurement.link = Some(LinkReport {
            kernel_drops: 3,
            ..LinkReport::default()
        });
        assert!(!measurement.is_disturbed());
        assert_eq!(measurement.mishaps(), 3);
    }

    #[test]
    fn anything_else_is_measured_in_operations() {
        let measurement = measurement(Workload::Handshake);
        assert!((measurement.speed() - 125.0).abs() < 1e-9);
        assert!((measurement.cost(measurement.client_cpu) - 3000.0).abs() < 1e-9);
        assert_eq!(measurement.client.scenario, Scenario::Handshake);
    }

    #[test]
    fn ends_that_disagree_are_refused() {
        let plan = Plan::parse_from(["peers", "--requests", "500"]);
        let check =
            |workload, client: &_, server: &_| super::check(&plan, workload, client, server);
        let up = measurement(Workload::Up);
        assert!(check(Workload::Up, &up.client, &up.server).is_ok());
        assert!(check(Workload::Down, &up.client, &up.server).is_err());
        assert!(check(Workload::Handshake, &up.client, &up.server).is_err());
        assert!(check(Workload::Requests { in_flight: 1 }, &up.client, &up.server).is_err());
    }

    #[test]
    fn files_have_their_size_whether_or_not_the_server_counts() {
        let plan = Plan::parse_from("peers --requests 500 --file-size 4M".split(' '));
        let workload = "files-1".parse().unwrap();
        let mut one = measurement(workload);
        assert!(check(&plan, workload, &one.client, &one.server).is_err());
        one.server.is_uncounted = true;
        assert!(check(&plan, workload, &one.client, &one.server).is_ok());
        one.server.is_uncounted = false;
        one.server.answers = 500;
        assert!(check(&plan, workload, &one.client, &one.server).is_ok());
        one.client.bytes -= 1;
        assert!(check(&plan, workload, &one.client, &one.server).is_err());
    }
}
