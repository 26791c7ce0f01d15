//! The figures of a run as JSON.

use std::collections::BTreeMap;

use courser_measure::{Stats, Times};
use courser_units::to_f64;
use serde_json::{Map, Value, json};

use crate::counts::QuicRecord;
use crate::plan::Plan;
use crate::summary::Summary;

/// Returns the figures of a run as JSON. Times are in seconds, sizes in bytes.
///
/// Figures that oha also reports have its names.
pub fn document(plan: &Plan, summary: &Summary) -> Value {
    let latency = summary.latency.stats();
    let all = summary.done + summary.errored;
    let rps = Stats::of(summary.rates.iter().copied());
    json!({
        "summary": {
            "successRate": if all > 0 { to_f64(summary.done) / to_f64(all) } else { 0.0 },
            "total": summary.elapsed,
            "slowest": latency.max,
            "fastest": latency.min,
            "average": latency.mean,
            "requestsPerSec": summary.over_time(all),
            "totalData": summary.data,
            "sizePerRequest": summary.data.checked_div(summary.done),
            "sizePerSec": summary.over_time(summary.data),
        },
        "responseTimeHistogram": histogram(&summary.latency),
        "latencyPercentiles": percentiles(&summary.latency),
        "firstByteHistogram": histogram(&summary.head),
        "firstBytePercentiles": percentiles(&summary.head),
        "rps": {
            "mean": rps.mean, "stddev": rps.sd, "max": rps.max, "min": rps.min,
            "percentiles": { "p50": rps.median, "p95": rps.p95, "p99": rps.p99 },
        },
        "details": {
            "DNSDialup": triple(&summary.connects()),
            "firstByte": triple(&summary.head.stats()),
        },
        "statusCodeDistribution": summary.statuses,
        "errorDistribution": summary.errors,
        "url": plan.target.url,
        "protocol": summary.agreed.as_ref().map(|agreed| agreed.version.name()),
        "quic_version": summary
            .agreed
            .as_ref()
            .and_then(|agreed| agreed.quic)
            .map(|version| version.to_string()),
        "tls": summary.agreed.as_ref().map(|agreed| {
            let tls = agreed.tls.as_ref();
            json!({
                "version": tls.map(|tls| tls.version),
                "cipher": tls.and_then(|tls| tls.cipher.as_deref()),
                "group": tls.and_then(|tls| tls.group.as_deref()),
            })
        }),
        "settings": {
            "clients": plan.connections, "threads": plan.threads, "streams": plan.streams,
            "rate": plan.rate, "latencyCorrection": plan.is_corrected,
        },
        "requests": {
            "asked": summary.requested, "started": summary.sent, "done": summary.done,
            "succeeded": summary.succeeded, "errored": summary.errored,
            "timeout": summary.timeouts,
        },
        "latency": latency,
        "latencyFromSent": summary.is_corrected.then(|| summary.service.stats()),
        "connections": connections(summary),
        "moves": summary.moves,
        "interrupted": summary.is_interrupted,
        "abandoned": summary.is_abandoned,
        "traffic": {
            "received": summary.received, "sent": summary.sent_bytes, "data": summary.data,
            "fields": summary.fields,
        },
        "warnings": summary.warnings,
        "cpu": {
            "seconds": summary.cpu_seconds, "perRequest": summary.cpu_per_answer(),
        },
    })
}

fn connections(summary: &Summary) -> Value {
    let quic = |of: fn(&QuicRecord) -> f64| summary.quic(of);
    let io = summary.io();
    json!({
        "made": summary.connections.len(), "refused": summary.refused, "lost": summary.lost,
        "connect": summary.connects(),
        "handshakes": summary.handshakes.map(|it| json!({
            "full": it.full, "resumed": it.resumed,
            "earlyDataAccepted": it.early_accepted, "earlyDataRejected": it.early_rejected,
        })),
        "firstByte": summary.first_bytes(),
        "requestsPerSec": summary.rates_of_connections(),
        "minRtt": quic(|quic| quic.min_rtt.as_secs_f64()),
        "smoothedRtt": quic(|quic| quic.smoothed_rtt.as_secs_f64()),
        "packetsSent": quic(|quic| to_f64(quic.packets_sent)),
        "packetsReceived": quic(|quic| to_f64(quic.packets_received)),
        "packetsLost": quic(|quic| to_f64(quic.packets_lost)),
        "datagramsSent": io.and_then(|io| io.sent_datagrams),
        "datagramsReceived": io.and_then(|io| io.received_datagrams),
        "kernelDrops": io.map(|io| io.kernel_drops.unwrap_or(0)),
        "sendCalls": io.map(|io| io.send_calls),
        "receiveCalls": io.map(|io| io.receive_calls),
    })
}

fn triple(stats: &Stats) -> Value {
    json!({ "average": stats.mean, "fastest": stats.min, "slowest": stats.max })
}

fn percentiles(times: &Times) -> Map<String, Value> {
    let name = |share: f64| format!("p{share}");
    PERCENTILES
        .iter()
        .map(|share| {
            let value = times.quantile(share / 100.0);
            (name(*share), json!(value))
        })
        .collect()
}

fn histogram(times: &Times) -> BTreeMap<String, u64> {
    let classes = times.classes().into_iter();
    classes
        .map(|(upper, count)| (format!("{upper:.9}"), count))
        .collect()
}

/// Percentiles of latencies in reports, in percent.
pub const PERCENTILES: [f64; 9] = [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];
