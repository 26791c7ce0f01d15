//! The client, which finds the server, runs a scenario and reports the result.

use std::sync::Arc;

use courser::telemetry::SinkFactory;
use courser_measure::target::{resolve, split_target};
use courser_measure::tls::{self, Trust};
use courser_measure::{CpuClock, sockets};
use courser_perf::{Outcome, Over, PROTOCOL, Remote, Report, Side, Watch, measure, reachable};

use super::{flags, report_text};
use crate::args::ClientArguments;
use crate::error::Failure;
use crate::output::{self, Progress};
use crate::process::RECORDS;
use crate::values::DEFAULT_PORT;

/// Runs `courser perf client`, inside a runtime.
pub(crate) async fn main(arguments: &ClientArguments) -> Result<(), Failure> {
    let plan = flags::plan(arguments)?;
    let traces = RECORDS.sinks(arguments.common.qlog.as_deref(), "courser perf")?;
    let remotes = remotes(arguments, traces.as_ref())?;
    let json = arguments.common.json;
    let mut remote = reachable(remotes).await?;
    remote.clock = CpuClock::Process;
    if !json {
        output::line(report_text::headline(&remote, &plan));
    }
    let progress = Progress::new();
    progress.begin(plan.scenario.name());
    let watch = Watch {
        progress: &|share| progress.at(share),
        interval: plan.interval,
        on_interval: &|interval| {
            if !json {
                progress.line(report_text::interval(interval));
            }
        },
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

/// Returns the server at each of its addresses.
fn remotes(
    arguments: &ClientArguments,
    sinks: Option<&Arc<dyn SinkFactory>>,
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
        versions: crate::values::quic_versions(&arguments.common.quic_version),
        mtu: arguments.common.mtu,
        segmentation_offload: !arguments.common.no_udp_gso,
        rebind_every: arguments.rebind_every,
        connect_timeout: arguments.connect_timeout,
        clock: CpuClock::Process,
        tls: tls.clone(),
        sinks: sinks.cloned(),
    });
    Ok(remotes.collect())
}
