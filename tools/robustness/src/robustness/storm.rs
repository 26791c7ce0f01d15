//! Many simultaneous clients from one address.

use std::time::Duration;

use serde_json::{Value, json};

use super::figure::{Figure, Verdict};
use super::setup::Setup;
use crate::helper::Helper;
use crate::process::{Serve, Server};

/// The aim in seconds for the median of 1000 clients. Both aims have the order of the CPU time that
/// both ends need for the handshakes. Other numbers of clients have proportional aims.
const P50: f64 = 0.3;
const P99: f64 = 0.6;

/// Measures `count` clients that start simultaneously, with a new server for each round.
pub(super) fn measure(setup: &Setup, count: u32) -> Result<Vec<Figure>, String> {
    let rounds = match (setup.is_quick, count) {
        (true, _) => 1,
        (false, ..=1000) => 7,
        (false, _) => 3,
    };
    let rounds: Vec<Round> = (0..rounds)
        .map(|_| round(setup, count))
        .collect::<Result<_, _>>()?;
    let median = |of: &dyn Fn(&Round) -> f64| median(rounds.iter().map(of).collect());
    let sum = |of: &dyn Fn(&Round) -> f64| rounds.iter().map(of).sum::<f64>();
    let (p50, p99) = (
        median(&|it| seconds(&it.clients["connect"]["p50"])),
        median(&|it| seconds(&it.clients["connect"]["p99"])),
    );
    let max = median(&|it| seconds(&it.clients["connect"]["max"]));
    let scale = f64::from(count) / 1000.0;
    let asked = f64::from(count) * rounds.len() as f64;
    let served = sum(&|it| seconds(&it.clients["served"]));
    let dropped = sum(&|it| it.dropped);
    let conditions = [
        p50 <= P50 * scale,
        p99 <= P99 * scale,
        served >= asked,
        dropped == 0.0,
    ];
    let retries = sum(&|it| it.retries);
    Ok(vec![Figure {
        id: format!("storm-{count}"),
        title: format!("{count} clients at once from one address, idle server: connect p50 / p99"),
        aim: format!(
            "{:.1} s / {:.1} s, all served, 0 datagrams dropped",
            P50 * scale,
            P99 * scale
        ),
        measured: format!(
            "{p50:.3} s / {p99:.3} s (max {max:.3} s); {served:.0} of {asked:.0} served, {dropped:.0} \
             datagrams dropped, {retries:.0} Retries"
        ),
        verdict: Verdict::all(&conditions),
        method: format!(
            "server on one core, clients on another, each with a port of its own; median of {} \
             rounds, sums of counts",
            rounds.len()
        ),
        cpu: [
            median(&|it| it.server_cpu),
            median(&|it| seconds(&it.clients["cpuSeconds"])),
        ],
        detail: json!(rounds.iter().map(Round::json).collect::<Vec<_>>()),
    }])
}

struct Round {
    clients: Value,
    server_cpu: f64,
    /// Datagrams that the kernel dropped at the server's socket.
    dropped: f64,
    retries: f64,
    counters: Value,
}

impl Round {
    fn json(&self) -> Value {
        json!({
            "clients": self.clients,
            "serverCpuSeconds": self.server_cpu,
            "kernelDrops": self.dropped,
            "retries": self.retries,
            "server": self.counters,
        })
    }
}

fn round(setup: &Setup, count: u32) -> Result<Round, String> {
    let serve = Serve {
        core: Some(setup.server_core),
        ..Serve::folder(&setup.courser, setup.site())
    };
    let server = serve.start()?;
    // The first handshake of a process also initializes TLS.
    arrivals(setup, &server, 10, Duration::from_millis(5))?.finish()?;
    let (before, cpu) = (server.metrics(), server.process.cpu());
    let clients = arrivals(setup, &server, count, Duration::ZERO)?.finish()?;
    let after = server.metrics();
    let server_cpu = server.process.cpu().saturating_sub(cpu);
    let change = |name: &str| after.get(name) - before.get(name);
    let names = [
        "quic_retries_sent_total",
        "quic_refused_total",
        "quic_datagrams_dropped_total",
        "quic_refused_for_memory_total",
        "connections_refused_total",
        "quic_handshakes_total",
        "quic_ptos_total",
        "quic_packets_lost_total",
    ];
    Ok(Round {
        clients,
        server_cpu: server_cpu.as_secs_f64(),
        dropped: server.kernel_drops() as f64,
        retries: change("quic_retries_sent_total"),
        counters: names
            .iter()
            .map(|name| ((*name).to_owned(), json!(change(name))))
            .collect(),
    })
}

/// Starts honest clients that connect at this interval and leave after one request.
pub(super) fn arrivals(
    setup: &Setup,
    server: &Server,
    count: u32,
    interval: Duration,
) -> Result<Helper, String> {
    Helper::clients(
        Some(setup.client_core),
        "arrivals",
        &[
            ("server", server.address.to_string()),
            ("count", count.to_string()),
            ("interval_us", interval.as_micros().to_string()),
            ("limit_ms", PATIENCE.as_millis().to_string()),
        ],
    )
}

/// The time after which a client counts as not served, longer than any should wait.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
