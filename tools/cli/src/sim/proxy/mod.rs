//! `courser sim proxy`: a link in real time between UDP programs.

mod args;
mod progress;

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use courser_emulator::{Emulator, Error, Plan, Report};
use courser_measure::target::parse_socket_addr;
use serde::Serialize;
use serde_json::json;

pub(crate) use args::ProxyArguments;

use crate::error::Failure;
use crate::output;
use crate::process::{pin, runtime, stop_signal};
use progress::Progress;

/// Runs until a signal or the end of the time, then prints the report.
pub(crate) fn main(arguments: &ProxyArguments) -> Result<(), Failure> {
    pin(arguments.core)?;
    let mut emulator = Emulator::bind(plan(arguments)?).map_err(explain)?;
    announce(&emulator, arguments.json);
    let is_stopped = stop_flag()?;
    let mut progress = Progress::new();
    let outcome = emulator.run(|status| {
        progress.at(status);
        let is_over = arguments.time.is_some_and(|time| status.elapsed() >= time);
        !is_over && !is_stopped.load(Relaxed)
    });
    drop(progress);
    outcome.map_err(|error| Failure::new(format!("the proxy failed: {error}")))?;

    let report = emulator.report();
    if arguments.json {
        let text = serde_json::to_string(&Document::new(&report));
        output::line(text.map_err(|error| Failure::new(error.to_string()))?);
    } else {
        output::line(report.to_string());
    }
    Ok(())
}

/// Returns the plan of the emulator that the flags describe.
fn plan(arguments: &ProxyArguments) -> Result<Plan, Failure> {
    Ok(Plan {
        listen: arguments.listen,
        server: resolve(&arguments.to)?,
        link: arguments.spec(),
        seed: arguments.seed,
        max_clients: arguments.max_clients,
        idle: arguments.idle,
        amplification_bytes: arguments.amplification_bytes,
        hold: arguments.hold,
    })
}

/// Adds the names of the flags to an error of the emulator.
fn explain(error: Error) -> Failure {
    match error {
        Error::Listen { address, source } => Failure::cannot_listen(address, "udp", &source),
        Error::Loop(server) => Failure::new(format!(
            "--listen and --to are the same address {server}: datagrams would loop"
        )),
        other => Failure::new(other.to_string()),
    }
}

/// The report as JSON.
#[derive(Serialize)]
struct Document<'a> {
    event: &'static str,
    courser: &'static str,
    #[serde(flatten)]
    report: &'a Report,
}

impl<'a> Document<'a> {
    fn new(report: &'a Report) -> Self {
        Self {
            event: "report",
            courser: env!("CARGO_PKG_VERSION"),
            report,
        }
    }
}

fn announce(emulator: &Emulator, as_json: bool) {
    let (plan, address) = (emulator.plan(), emulator.local_addr());
    if as_json {
        let event = json!({
            "event": "listening",
            "protocol": "udp",
            "address": address,
            "to": plan.server,
            "link": plan.link.to_string(),
        });
        output::line(event.to_string());
        return;
    }
    emulator.warnings().iter().for_each(output::note);
    output::line(format!(
        "listening on {address} (udp), forwarding to {}: {}",
        plan.server, plan.link
    ));
}

/// Resolves `HOST:PORT` to its first address.
fn resolve(target: &str) -> Result<SocketAddr, Failure> {
    let is_target = target
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !is_target {
        return Err(Failure::new(format!(
            "'{target}' is not HOST:PORT: use one such as 127.0.0.1:4433 or localhost:4433"
        )));
    }
    let unknown = |reason: String| Failure::new(format!("cannot resolve '{target}': {reason}"));
    let found = match target.contains('%') {
        true => parse_socket_addr(target).map(Some),
        false => target.to_socket_addrs().map(|mut found| found.next()),
    };
    let address = found.map_err(|error| unknown(error.to_string()))?;
    let address = address.ok_or_else(|| unknown("it has no address".to_owned()))?;
    if address.port() == 0 {
        return Err(Failure::new(format!(
            "'{target}' has port 0: give the server's port"
        )));
    }
    Ok(address)
}

/// Returns a flag that becomes true when the user or the system asks the process to end.
fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_stopped);
    let runtime = runtime()?;
    // The thread holds nothing that has to be released, and ends with the process.
    std::thread::spawn(move || {
        runtime.block_on(stop_signal());
        flag.store(true, Relaxed);
    });
    Ok(is_stopped)
}
