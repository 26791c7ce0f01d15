//! `courser perf client`: finds the server, runs a scenario and reports the result.

use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use courser::telemetry::SinkFactory;
use courser_measure::target::{resolve, split_target, without_zone};
use courser_measure::tls::{self, Trust};
use courser_measure::{CpuClock, sockets};
use courser_perf::{
    Csv, Outcome, Over, PROTOCOL, Remote, Report, Side, Via, Watch, measure, reachable, text,
};

use crate::args::ClientArguments;
use crate::error::Failure;
use crate::output::{self, Progress};
use crate::process::{RECORDS, stop_signal};
use crate::values::DEFAULT_PORT;

/// Runs `courser perf client` on the current runtime. Returns the exit code, which is that of shells for SIGINT
/// if the measurement was interrupted.
pub(crate) async fn main(arguments: &ClientArguments) -> Result<ExitCode, Failure> {
    let is_stopped = AtomicBool::new(false);
    let mut work = pin!(run(arguments, &is_stopped));
    tokio::select! {
        code = &mut work => return code,
        () = stop_signal() => is_stopped.store(true, Relaxed),
    }
    // The report waits for the server's counters, unless the server does not answer in time or the user sends a
    // second signal.
    tokio::select! {
        code = &mut work => code,
        () = stop_signal() => Ok(INTERRUPTED.into()),
        () = tokio::time::sleep(REPORT_TIMEOUT) => {
            output::note("interrupted before the measurement began");
            Ok(INTERRUPTED.into())
        }
    }
}

/// The exit code of shells for SIGINT.
pub(super) const INTERRUPTED: u8 = 130;

/// Time for the report of an interrupted measurement.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

async fn run(arguments: &ClientArguments, is_stopped: &AtomicBool) -> Result<ExitCode, Failure> {
    let plan = arguments.plan.plan()?;
    let traces = RECORDS.sinks(arguments.common.qlog.as_deref(), "courser perf")?;
    let remotes = remotes(arguments, traces.as_ref())?;
    let mut remote = reachable(remotes).await?;
    remote.clock = CpuClock::Process;
    let form = Form::of(arguments, Csv::new(&remote, &plan));
    match form {
        Form::Text => output::line(text::headline(&remote, &plan)),
        Form::Csv(_) => output::line(Csv::header()),
        Form::Json => {}
    }
    if form != Form::Json && remote.over != Over::Tcp {
        let machine = sockets::capabilities();
        machine.warnings.iter().for_each(output::note);
    }
    let progress = Progress::new();
    progress.begin(plan.scenario.name());
    let watch = Watch {
        progress: &|share| progress.at(share),
        interval: plan.interval,
        on_interval: &|interval| match form {
            Form::Text => progress.line(text::interval(interval)),
            Form::Csv(csv) => progress.line(csv.interval(interval)),
            Form::Json => {}
        },
        is_stopped: &|| is_stopped.load(Relaxed),
    };
    let outcome = measure(&remote, &plan, watch).await;
    drop(progress);
    let outcome = match outcome {
        Err(failure) if is_stopped.load(Relaxed) => {
            output::note(failure.to_string());
            return Ok(INTERRUPTED.into());
        }
        outcome => outcome?,
    };
    notes_of(form, &outcome).iter().for_each(output::note);
    let report = Report::new(&remote, &plan, outcome);
    match form {
        Form::Json => {
            let text = serde_json::to_string_pretty(&report)
                .map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?;
            output::line(text);
        }
        Form::Csv(csv) => output::line(csv.summary(&report)),
        Form::Text => {
            text::lines(&report).iter().for_each(output::line);
            if report.interrupted {
                output::line("interrupted: the figures cover the time until then");
            }
        }
    }
    Ok(match report.interrupted {
        true => INTERRUPTED.into(),
        false => ExitCode::SUCCESS,
    })
}

/// The output format of the results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Text,
    Json,
    Csv(Csv),
}

impl Form {
    fn of(arguments: &ClientArguments, csv: Csv) -> Self {
        match (arguments.common.json, arguments.plan.csv) {
            (true, _) => Self::Json,
            (false, true) => Self::Csv(csv),
            (false, false) => Self::Text,
        }
    }
}

/// Returns the notes that the output format does not contain: JSON contains all, and text contains gaps.
fn notes_of(form: Form, outcome: &Outcome) -> Vec<String> {
    let gap = outcome.server_gap.map(|gap| gap.to_string());
    match form {
        Form::Json => Vec::new(),
        Form::Text => warnings_of(outcome),
        Form::Csv(_) => warnings_of(outcome).into_iter().chain(gap).collect(),
    }
}

/// Returns warnings about datagrams that the kernel dropped at either end.
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
        None if arguments.insecure => Trust::AnyServer,
        None => Trust::System,
    };
    let protocol = match arguments.plan.webtransport {
        true => courser::h3::ALPN.as_bytes(),
        false => PROTOCOL,
    };
    let tls = Arc::new(tls::client(&trust, protocol)?);
    let (host, port) = split_target(&arguments.server, DEFAULT_PORT)?;
    let via = match &arguments.via {
        Some(proxy) => Some(Via::new(proxy, &arguments.via_header)?),
        None => None,
    };
    let remotes = resolve(host, port)?.into_iter().map(|address| Remote {
        target: match &arguments.via {
            Some(proxy) => format!("{} via {proxy}", arguments.server),
            None => arguments.server.clone(),
        },
        address,
        name: arguments
            .server_name
            .clone()
            .unwrap_or_else(|| without_zone(host).to_owned()),
        over: match (arguments.plan.tcp, arguments.plan.webtransport) {
            (true, _) => Over::Tcp,
            (false, true) => Over::WebTransport,
            (false, false) => Over::Quic,
        },
        congestion: arguments.common.cc,
        capacity_rise: !arguments.common.no_capacity_rise,
        versions: crate::values::quic_versions(&arguments.common.quic_version),
        mtu: arguments.common.mtu,
        segmentation_offload: !arguments.common.no_udp_gso,
        rebind_every: arguments.rebind_every,
        paths: arguments.paths.clone(),
        via: via.clone(),
        connect_timeout: arguments.connect_timeout,
        clock: CpuClock::Process,
        tls: tls.clone(),
        sinks: sinks.cloned(),
    });
    Ok(remotes.collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Arguments, Command, PerfCommand};

    #[test]
    fn no_capacity_rise_disables_the_search() {
        for (flag, expected) in [(None, true), (Some("--no-capacity-rise"), false)] {
            let words = ["courser", "perf", "client", "127.0.0.1", "--insecure"];
            let arguments = Arguments::try_parse_from(words.into_iter().chain(flag));
            let command = arguments.expect("a command line").command;
            let Some(Command::Perf(PerfCommand::Client(client))) = command else {
                panic!("another command");
            };
            let remotes = remotes(&client, None).expect("an address");
            assert_eq!(remotes[0].capacity_rise, expected);
        }
    }
}
