//! The client: finds the server, runs a scenario, reports.

use std::sync::Arc;

use courser_measure::target::{resolve, split_target};
use courser_measure::tls::{self, Trust};
use courser_measure::{CpuClock, sockets};
use courser_qlog::QlogDirectory;

use super::bench::{Bench, Outcome, Side};
use super::meter::Watch;
use super::plan::{Plan, Scenario};
use super::remote::{Over, Remote};
use super::report::Report;
use super::report_text;
use super::scenario_rr::{self, Shape};
use super::wire::PROTOCOL;
use super::{scenario_bulk, scenario_close, scenario_handshake};
use crate::args::{ClientArguments, DEFAULT_PORT};
use crate::error::Failure;
use crate::output::{self, Progress};

/// `courser perf client`, inside a runtime.
pub(crate) async fn main(arguments: &ClientArguments) -> Result<(), Failure> {
    let plan = Plan::from_arguments(arguments)?;
    let qlog = super::trace_directory(&arguments.common)?;
    let remotes = remotes(arguments, qlog.as_ref())?;
    let json = arguments.common.json;
    let mut remote = reachable(remotes).await?;
    remote.clock = CpuClock::Process;
    if !json {
        output::line(report_text::headline(&remote, &plan));
    }
    let progress = Progress::new();
    progress.begin(plan.scenario.name());
    let watch = Watch {
        progress: &progress,
        interval: plan.interval,
        lines: !json,
    };
    let outcome = measure(&remote, &plan, watch).await?;
    drop(progress);
    if !json {
        warnings_of(&outcome).iter().for_each(output::note);
    }
    let report = Report::new(&remote, &plan, outcome);
    if json {
        let text = serde_json::to_string_pretty(&report)
            .map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?;
        output::line(text);
    } else {
        report_text::lines(&report).iter().for_each(output::line);
    }
    Ok(())
}

/// Returns warnings of datagrams that the kernel dropped at either end.
pub(crate) fn warnings_of(outcome: &Outcome) -> Vec<String> {
    let drops = |side: &Side| side.io.kernel_drops.unwrap_or(0);
    let here = sockets::describe_drops(drops(&outcome.client), &sockets::capabilities());
    let there = outcome.server.as_ref().map_or(0, drops);
    let there = (there > 0).then(|| {
        format!("the kernel of the server dropped {there} received datagrams: see its warnings")
    });
    here.into_iter().chain(there).collect()
}

/// Runs one scenario against a server.
pub(crate) async fn measure(
    remote: &Remote,
    plan: &Plan,
    watch: Watch<'_>,
) -> Result<Outcome, Failure> {
    let mut bench = Bench::open(remote, plan.amount, watch).await?;
    let outcome = match plan.scenario {
        Scenario::Bulk {
            direction,
            connections,
            streams,
        } => scenario_bulk::run(&mut bench, direction, connections, streams).await,
        Scenario::Rr {
            connections,
            in_flight,
            request_size,
            response_size,
            uni,
        } => {
            let shape = Shape {
                connections,
                in_flight,
                request_size,
                response_size,
                uni,
            };
            scenario_rr::run(&mut bench, shape).await
        }
        Scenario::Latency {
            request_size,
            response_size,
            uni,
        } => {
            let shape = Shape {
                connections: 1,
                in_flight: 1,
                request_size,
                response_size,
                uni,
            };
            scenario_rr::run(&mut bench, shape).await
        }
        Scenario::Handshake { parallel, resume } => {
            scenario_handshake::run(&mut bench, parallel, resume).await
        }
        Scenario::Close => scenario_close::run(&mut bench).await,
    };
    bench.close().await;
    outcome
}

/// The server at each of its addresses.
fn remotes(
    arguments: &ClientArguments,
    qlog: Option<&Arc<QlogDirectory>>,
) -> Result<Vec<Remote>, Failure> {
    let trust = match &arguments.ca {
        Some(file) => Trust::File(file.clone()),
        None if arguments.insecure => Trust::Anybody,
        None => Trust::System,
    };
    let tls = Arc::new(tls::client(&trust, PROTOCOL)?);
    let (host, port) = split_target(&arguments.server, DEFAULT_PORT)?;
    let remotes = resolve(host, port)?.into_iter().map(|address| Remote {
        target: arguments.server.clone(),
        address,
        name: arguments
            .server_name
            .clone()
            .unwrap_or_else(|| host.to_owned()),
        over: if arguments.tcp { Over::Tcp } else { Over::Quic },
        congestion: arguments.common.cc,
        mtu: arguments.common.mtu,
        segmentation_offload: !arguments.common.no_udp_gso,
        connect_timeout: arguments.connect_timeout,
        clock: CpuClock::Process,
        tls: tls.clone(),
        qlog: qlog.cloned(),
    });
    Ok(remotes.collect())
}

/// The first address where somebody answers; the first one's trouble if nobody does.
async fn reachable(mut remotes: Vec<Remote>) -> Result<Remote, Failure> {
    if remotes.len() == 1 {
        return Ok(remotes.remove(0));
    }
    let mut first_trouble = None;
    for remote in remotes {
        let connector = remote.connector()?;
        match connector.connect(&remote).await {
            Ok(link) => {
                link.close();
                return Ok(remote);
            }
            Err(failure) => {
                first_trouble.get_or_insert(failure);
            }
        }
    }
    Err(first_trouble.unwrap_or_else(|| Failure::new("the server has no address")))
}
