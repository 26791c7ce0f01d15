//! One measurement: a fresh server, a fresh client, and what they used.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;
use peers::process::{self, CpuTime};
use peers::{ClientResult, Failure, Ready, ServerResult, identity, settings};
use serde::Serialize;

use super::child::Program;
use super::files;
use super::host::{CoreTimes, Disturbance};
use super::link::{LinkReport, Proxy};
use super::load::{self, LoadReport};
use super::plan::Plan;
use super::registry::{Client, Stack};
use super::veth::{End, Veth};
use super::workload::{Family, Figure, Way, Workload};

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
    /// Growth of the server's resident memory with idle connections, in KiB.
    pub(crate) idle_kib: Option<f64>,
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

    /// The workload's first figure, in its unit; a latency or memory of nothing is not a number.
    pub(crate) fn figure(&self) -> f64 {
        let seconds = self.client.seconds;
        match self.workload.figure() {
            Figure::Goodput => self.work() * 8.0 / seconds,
            Figure::Rate => self.work() / seconds,
            Figure::Datagrams => self.server.datagrams.map_or(f64::NAN, |datagrams| {
                datagrams.received as f64 / datagrams.seconds
            }),
            Figure::Memory => {
                self.idle_kib.unwrap_or(f64::NAN) / f64::from(self.workload.connections())
            }
            Figure::Latency => self.client.latency.map_or(f64::NAN, |times| times.p99_us),
        }
    }

    /// CPU of `used`: seconds a GB of a transfer, microseconds an operation of anything else.
    pub(crate) fn cost(&self, used: CpuTime) -> f64 {
        used.total() / self.work()
            * if self.workload.figure().is_of_bytes() {
                1.0
            } else {
                1e6
            }
    }

    /// GB or operations.
    pub(crate) fn work(&self) -> f64 {
        if self.workload.figure().is_of_bytes() {
            self.client.bytes as f64 / 1e9
        } else {
            self.client.count as f64
        }
    }

    /// Datagrams that the kernel dropped at the sockets of both ends, if both looked.
    pub(crate) fn socket_drops(&self) -> Option<u64> {
        Some(self.client.socket_drops? + self.server.socket_drops?)
    }

    /// Unreliable datagrams that did not come, of those that were sent.
    pub(crate) fn datagrams_lost(&self) -> Option<f64> {
        let received = self.server.datagrams?.received as f64;
        Some(1.0 - received / self.client.count as f64)
    }
}

/// Makes measurements by one plan.
#[derive(Debug)]
pub(crate) struct Measurer<'a> {
    plan: &'a Plan,
    identity: Identity,
    veth: Option<Veth>,
    failures: usize,
    discarded: usize,
}

impl<'a> Measurer<'a> {
    /// Makes the certificate of the run, the network between its ends, and the files that its
    /// workloads take.
    pub(crate) fn new(plan: &'a Plan) -> Result<Self, Failure> {
        let identity = Identity::new()?;
        files::write(plan, &identity.folder)?;
        Ok(Self {
            plan,
            identity,
            veth: plan.veth.then(Veth::new).transpose()?,
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
        let mut server = self.start(End::Server, command)?;
        let ready: Ready = server.line(SERVER_TIMEOUT)?;
        let proxy = match &plan.link {
            Some(link) => Some(Proxy::start(plan, link, ready.listening, pair)?),
            None => None,
        };
        let entrance = proxy.as_ref().map_or(ready.listening, Proxy::address);
        let command = self.client(stack, workload, entrance);
        let before_idle = process::resident_kib(server.id());
        let mut client = self.start(End::Client, command)?;
        let timeout = Duration::from_secs(plan.timeout);
        let client_result = match &stack.client {
            Client::Peer(_) => client.line::<ClientResult>(timeout)?,
            Client::Load { .. } => client.line::<LoadReport>(timeout)?.result()?,
        };
        let idle_kib = matches!(workload, Workload::Idle { .. })
            .then(|| process::resident_kib(server.id()) as f64 - before_idle as f64);
        // Idle connections are kept until then.
        client.close_stdin();
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
            idle_kib,
        })
    }

    /// Starts an end on its core, and in its namespace if there are any.
    fn start(&self, end: End, command: Command) -> Result<Program, Failure> {
        let (name, core) = match end {
            End::Server => ("server", self.plan.server_core),
            End::Client => ("client", self.plan.client_core),
        };
        match &self.veth {
            Some(veth) => veth.inside(end, || Program::start(name, command, Some(core)))?,
            None => Program::start(name, command, Some(core)),
        }
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
        if workload == Workload::Datagrams {
            command.arg("--datagrams");
        }
        if self.veth.is_some() {
            command.args(["--listen", &Veth::listen().to_string()]);
        }
        match stack.family {
            Family::Perf | Family::Http => command.args(self.plan.transport.arguments()),
            // As they are installed.
            Family::Files => command.arg("--folder").arg(files::root(folder)),
            // The origin leaves the proxy its core.
            Family::Proxy => {
                command.args(["--origin-core", &self.plan.client_core.to_string()]);
                command.args(["--response-size", &self.plan.file_size.to_string()])
            }
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
            Workload::Up | Workload::Down | Workload::Latency { .. } => {
                command.args(["--bytes", &self.plan.bytes().to_string()]);
            }
            Workload::Streams { count, .. } => {
                command.args(["--bytes", &self.plan.bytes().to_string()]);
                command.args(["--streams", &count.to_string()]);
            }
            Workload::Connections { count, .. } => {
                command.args(["--bytes", &self.plan.bytes().to_string()]);
                command.args(["--connections", &count.to_string()]);
            }
            Workload::Datagrams => {
                command.args(["--count", &self.plan.datagrams.to_string()]);
                if self.plan.payload != settings::DATAGRAM_PAYLOAD {
                    command.args(["--payload", &self.plan.payload.to_string()]);
                }
            }
            Workload::Idle { connections } => {
                command.args(["--connections", &connections.to_string()]);
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
            // `courser load` is the client of all servers of files and of all proxies.
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
        Workload::Streams { count, way } | Workload::Connections { count, way } => {
            let moved = match way {
                Way::Up => server.received,
                Way::Down => server.sent,
            };
            let connections = workload.connections();
            moved == client.bytes
                && server.answers == u64::from(count)
                && server.connections == u64::from(connections)
        }
        // The transfer, and a byte in each direction for each request.
        Workload::Latency { way } => {
            let (bulk, small) = match way {
                Way::Up => (server.received, server.sent),
                Way::Down => (server.sent, server.received),
            };
            server.answers == client.count + 1
                && bulk == client.bytes + client.count
                && small == client.count
        }
        Workload::Datagrams => server
            .datagrams
            .is_some_and(|datagrams| (2..=client.count).contains(&datagrams.received)),
        // Each has answered after its rest.
        Workload::Idle { connections } => {
            let connections = u64::from(connections);
            server.connections == connections && server.answers == connections
        }
        // The last one may still be on its way when the server is told to end.
        Workload::Handshake => server.connections + 1 >= client.count,
        Workload::Requests { .. } => server.answers == client.count && server.sent == client.count,
        Workload::Http { .. } | Workload::HttpDown => {
            server.answers == client.count && server.sent == client.bytes
        }
        // Most servers of files count nothing, the origin of a proxy does; the client has to have what
        // it asked for.
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
    use peers::Datagrams;
    use peers::command_line::Scenario;
    use peers::latency::Latency;

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
                socket_drops: Some(2),
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
                datagrams: None,
                socket_drops: Some(3),
            },
            client_cpu: CpuTime {
                user: 1.0,
                system: 0.5,
            },
            server_cpu: CpuTime::default(),
            disturbance: Disturbance::default(),
            link: None,
            idle_kib: None,
        }
    }

    #[test]
    fn a_transfer_is_measured_in_bytes() {
        let measurement = measurement(Workload::Up);
        assert!((measurement.figure() - 4.0).abs() < 1e-9);
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
        assert!((measurement.figure() - 125.0).abs() < 1e-9);
        assert!((measurement.cost(measurement.client_cpu) - 3000.0).abs() < 1e-9);
        assert_eq!(measurement.client.scenario, Scenario::Handshake);
    }

    #[test]
    fn idle_connections_are_measured_in_memory() {
        let mut measurement = measurement("idle-500".parse().unwrap());
        measurement.idle_kib = Some(6000.0);
        assert!((measurement.figure() - 12.0).abs() < 1e-9);
        assert!((measurement.cost(measurement.client_cpu) - 3000.0).abs() < 1e-9);
    }

    #[test]
    fn datagrams_are_measured_where_they_come() {
        let mut measurement = measurement(Workload::Datagrams);
        assert_eq!(measurement.datagrams_lost(), None);
        measurement.server.datagrams = Some(Datagrams {
            received: 400,
            seconds: 2.0,
        });
        assert!((measurement.figure() - 200.0).abs() < 1e-9);
        assert!(
            measurement
                .datagrams_lost()
                .is_some_and(|lost| (lost - 0.2).abs() < 1e-9)
        );
        assert_eq!(measurement.socket_drops(), Some(5));
    }

    #[test]
    fn requests_beside_a_transfer_are_measured_in_time() {
        let mut measurement = measurement("latency-up".parse().unwrap());
        measurement.client.latency = Some(Latency {
            p50_us: 100.0,
            p99_us: 700.0,
        });
        assert!((measurement.figure() - 700.0).abs() < 1e-9);
        // Seconds a GB, as the transfer is nearly all of the work.
        assert!((measurement.cost(measurement.client_cpu) - 0.75).abs() < 1e-9);
    }

    #[test]
    fn parallel_transfers_and_idle_connections_are_checked() {
        let plan = Plan::parse_from(["peers"]);
        let check = |one: &Measurement| check(&plan, one.workload, &one.client, &one.server);
        let mut streams = measurement("streams-8-up".parse().unwrap());
        assert!(check(&streams).is_err(), "one answer for 8 streams");
        streams.server.answers = 8;
        assert!(check(&streams).is_ok());
        streams.workload = "connections-8-up".parse().unwrap();
        assert!(check(&streams).is_err(), "one connection of 8");
        let mut idle = measurement("idle-500".parse().unwrap());
        (idle.server.connections, idle.server.answers) = (500, 499);
        assert!(check(&idle).is_err(), "one does not answer");
        idle.server.answers = 500;
        assert!(check(&idle).is_ok());
        let mut latency = measurement("latency-up".parse().unwrap());
        latency.server.answers = 501;
        (latency.server.received, latency.server.sent) = (2_000_000_500, 500);
        assert!(check(&latency).is_ok());
        latency.server.sent = 499;
        assert!(check(&latency).is_err());
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
