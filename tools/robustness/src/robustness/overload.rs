//! Twice the load that the server can serve.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::figure::{Figure, Verdict};
use super::quota::Quota;
use super::setup::Setup;
use super::storm::seconds;
use crate::helper::Helper;
use crate::process::{Serve, Server, command};

/// The percentage of a core that the server gets.
///
/// Clients on the other core need about as much CPU time for a handshake or a request as the server.
/// If the server has a quarter of a core, they can offer twice the load and remain half idle.
const PERCENT: u64 = 25;

/// The smallest permitted rate under twice the load, relative to the peak.
const AIM: f64 = 0.9;

/// Measures handshakes per second, in closed loops with more and more clients and in an open loop.
pub(super) fn handshakes(setup: &Setup) -> Result<Vec<Figure>, String> {
    let time = duration(setup);
    let loops = [4, 16, 64];
    let mut closed = Vec::new();
    for at_once in loops {
        let limited = Limited::start(setup)?;
        let mode = [("at_once", at_once.to_string())];
        closed.push(limited.clients(setup, "handshakes", &mode, time)?);
    }
    let peak = closed.iter().map(|run| run.rate).fold(0.0, f64::max);
    let limited = Limited::start(setup)?;
    let interval = Duration::from_secs_f64(1.0 / (2.0 * peak.max(1.0)));
    let mode = [("interval_us", interval.as_micros().to_string())];
    let open = limited.clients(setup, "handshakes", &mode, time)?;
    Ok(vec![figure(
        "handshakes",
        peak,
        &open,
        json!(closed.iter().map(|run| &run.report).collect::<Vec<_>>()),
        time,
    )])
}

/// Measures requests per second on established connections.
pub(super) fn requests(setup: &Setup) -> Result<Vec<Figure>, String> {
    let time = duration(setup);
    let mut closed = Vec::new();
    for streams in [1, 8, 32, 100] {
        let limited = Limited::start(setup)?;
        closed.push(limited.load(setup, streams, None, time)?);
    }
    let peak = closed.iter().map(|run| run.rate).fold(0.0, f64::max);
    let limited = Limited::start(setup)?;
    let open = limited.load(setup, 100, Some(2.0 * peak), time)?;
    Ok(vec![figure(
        "requests",
        peak,
        &open,
        json!(closed.iter().map(|run| &run.report).collect::<Vec<_>>()),
        time,
    )])
}

fn duration(setup: &Setup) -> Duration {
    Duration::from_secs(if setup.is_quick { 4 } else { 15 })
}

fn figure(what: &str, peak: f64, open: &Run, closed: Value, time: Duration) -> Figure {
    let share = open.rate / peak.max(1.0);
    let busy = open.client_cpu / time.as_secs_f64();
    Figure {
        id: format!("overload-{what}"),
        title: format!("offered load 2x what can be served: {what}"),
        aim: format!("served rate >= {:.0} % of the peak", AIM * 100.0),
        measured: format!(
            "{:.0} %: {:.0} per second of {:.0} offered, peak {peak:.0}",
            share * 100.0,
            open.rate,
            2.0 * peak
        ),
        // Clients that use their whole core cannot offer the scheduled load.
        verdict: Verdict::all(&[share >= AIM, busy < 0.95]),
        method: format!(
            "server limited to {PERCENT} % of one core (cpu.max), clients on another core, {:.0} % of \
             it used; {} s each",
            busy * 100.0,
            time.as_secs()
        ),
        cpu: [open.server_cpu, open.client_cpu],
        detail: json!({ "closed": closed, "open": open.report, "peak": peak, "server": open.counters }),
    }
}

/// A server that is limited to a share of a core.
struct Limited {
    server: Server,
    _quota: Quota,
}

struct Run {
    /// Handshakes or requests served per second.
    rate: f64,
    server_cpu: f64,
    client_cpu: f64,
    report: Value,
    counters: Value,
}

impl Limited {
    fn start(setup: &Setup) -> Result<Self, String> {
        let serve = Serve {
            core: Some(setup.server_core),
            ..Serve::folder(&setup.courser, setup.site())
        };
        let server = serve.start()?;
        let quota = Quota::limit(&server.process, PERCENT)?;
        Ok(Self {
            server,
            _quota: quota,
        })
    }

    fn clients(
        &self,
        setup: &Setup,
        mode: &str,
        settings: &[(&str, String)],
        time: Duration,
    ) -> Result<Run, String> {
        let common = [
            ("server", self.server.address.to_string()),
            ("time_ms", time.as_millis().to_string()),
        ];
        let settings = [common.as_slice(), settings].concat();
        let cpu = self.server.process.cpu();
        let report = Helper::clients(Some(setup.client_core), mode, &settings)?.finish()?;
        Ok(self.run(
            seconds(&report["perSecond"]),
            seconds(&report["cpuSeconds"]),
            cpu,
            report,
        ))
    }

    fn load(
        &self,
        setup: &Setup,
        streams: u32,
        rate: Option<f64>,
        time: Duration,
    ) -> Result<Run, String> {
        let cpu = self.server.process.cpu();
        let mut load: Command = command(setup.courser.as_os_str(), Some(setup.client_core));
        load.args(["load", "--h3", "--insecure", "--json", "--no-tui"])
            .args(["--clients", "16", "--max-concurrent-streams"])
            .arg(streams.to_string())
            .arg("--duration")
            .arg(format!("{}ms", time.as_millis()));
        if let Some(rate) = rate {
            load.args(["--qps", &format!("{rate:.0}")]);
        }
        let output = load
            .arg(format!("https://{}/", self.server.address))
            .stderr(Stdio::null())
            .output()
            .map_err(|error| format!("cannot start `courser load`: {error}"))?;
        let report: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("`courser load` printed no report: {error}"))?;
        let succeeded = seconds(&report["requests"]["succeeded"]);
        let brief = json!({
            "requests": report["requests"],
            "latency": report["latency"],
            "errors": report["errorDistribution"],
            "connections": {
                "refused": report["connections"]["refused"],
                "lost": report["connections"]["lost"],
            },
        });
        Ok(self.run(
            succeeded / time.as_secs_f64(),
            seconds(&report["cpu"]["seconds"]),
            cpu,
            brief,
        ))
    }

    fn run(&self, rate: f64, client_cpu: f64, cpu: Duration, report: Value) -> Run {
        let metrics = self.server.metrics();
        let names = [
            "quic_retries_sent_total",
            "quic_refused_total",
            "quic_datagrams_dropped_total",
            "quic_handshakes_total",
        ];
        let mut counters: serde_json::Map<String, Value> = names
            .iter()
            .map(|name| ((*name).to_owned(), json!(metrics.get(name))))
            .collect();
        let drops = self.server.kernel_drops();
        counters.insert("kernelDrops".to_owned(), json!(drops));
        Run {
            rate,
            server_cpu: self.server.process.cpu().saturating_sub(cpu).as_secs_f64(),
            client_cpu,
            report,
            counters: counters.into(),
        }
    }
}
