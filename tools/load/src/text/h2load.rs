//! Formats the report as h2load does, with additional lines.

use courser_measure::Stats;
use courser_units::to_f64;

use crate::{Amount, Plan, QuicRecord, Summary};

/// Returns the text that is printed before the run.
pub fn before(plan: &Plan) -> String {
    let mut text = "starting benchmark...\n".to_owned();
    let share = |thread: u64| (plan.connections - thread).div_ceil(plan.threads);
    for thread in 0..plan.threads {
        let what = match plan.amount {
            Amount::Requests(count) => format!("{count} total requests"),
            Amount::Time {
                warm_up, measured, ..
            } => format!(
                "Timing-based test with {}s of warm-up time and {}s of main duration for measurements.",
                warm_up.as_secs_f64(),
                measured.as_secs_f64()
            ),
        };
        let clients = share(thread);
        text += &format!("spawning thread #{thread}: {clients} total client(s). {what}\n");
    }
    text
}

/// Returns the report, with lines for QUIC, errors, rates and CPU time added to those of h2load.
pub fn text(summary: &Summary) -> String {
    let mut lines = agreed(summary);
    lines.push(String::new());
    lines.push(format!(
        "finished in {}, {:.2} req/s, {}B/s",
        time(summary.elapsed),
        summary.per_second(),
        size(summary.over_time(summary.received))
    ));
    let failed = summary.errored + (summary.done - summary.succeeded);
    lines.push(format!(
        "requests: {} total, {} started, {} done, {} succeeded, {failed} failed, {} errored, {} timeout",
        summary.requested.unwrap_or(summary.done + summary.errored),
        summary.sent,
        summary.done,
        summary.succeeded,
        summary.errored,
        summary.timeouts
    ));
    lines.push(format!(
        "status codes: {} 2xx, {} 3xx, {} 4xx, {} 5xx",
        summary.class(2),
        summary.class(3),
        summary.class(4),
        summary.class(5)
    ));
    lines.push(traffic(summary));
    let io = summary.io().unwrap_or_default();
    if let (Some(sent), Some(received)) = (io.sent_datagrams, io.received_datagrams) {
        lines.push(format!("UDP datagram: {sent} sent, {received} received"));
    }
    lines.extend(extra_lines(summary));
    lines.extend(table(summary));
    lines.join("\n")
}

fn agreed(summary: &Summary) -> Vec<String> {
    let Some(agreed) = &summary.agreed else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    if let Some(tls) = &agreed.tls {
        lines.push(format!("TLS Protocol: {}", tls.version));
        let cipher = tls.cipher.iter();
        lines.extend(cipher.map(|cipher| format!("Cipher: {cipher}")));
        let group = tls.group.iter();
        lines.extend(group.map(|group| format!("Negotiated Group: {group}")));
    }
    lines.push(format!("Application protocol: {}", agreed.version.name()));
    let version = agreed.quic.iter();
    lines.extend(version.map(|version| format!("QUIC version: {version}")));
    lines
}

/// Returns the line of traffic. The bytes of frames count as headers, because the libraries do not count
/// them separately.
fn traffic(summary: &Summary) -> String {
    let (total, data) = (summary.received, summary.data);
    let headers = total.saturating_sub(data);
    let savings = if summary.fields > 0 {
        (1.0 - to_f64(headers) / to_f64(summary.fields)).max(0.0)
    } else {
        0.0
    };
    format!(
        "traffic: {}B ({total}) total, {}B ({headers}) headers (space savings {:.2}%), {}B ({data}) data",
        size(to_f64(total)),
        size(to_f64(headers)),
        savings * 100.0,
        size(to_f64(data))
    )
}

/// Returns the lines that h2load does not print.
fn extra_lines(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    if summary.refused > 0 || summary.lost > 0 {
        lines.push(format!(
            "connections: {} opened, {} refused, {} lost",
            summary.connections.len(),
            summary.refused,
            summary.lost
        ));
    }
    if let Some(handshakes) = &summary.handshakes {
        lines.push(format!("handshakes: {handshakes}"));
    }
    lines.extend(summary.moves.map(|moves| format!("moves: {moves}")));
    for (label, count) in &summary.errors {
        lines.push(format!("error: {count} {label}"));
    }
    if let Some(rate) = summary.rate {
        let from = if summary.is_corrected {
            "the scheduled time"
        } else {
            "the time of sending"
        };
        lines.push(format!(
            "rate: {rate:.2} req/s requested, {:.2} req/s sent; latency measured from {from}",
            summary.over_time(summary.sent)
        ));
    }
    if summary.cpu_seconds > 0.0 {
        let per_request = summary.cpu_per_answer();
        let per_request = per_request.map_or(String::new(), |seconds| {
            format!(", {:.2}us/req", seconds * 1e6)
        });
        lines.push(format!(
            "client CPU: {}{per_request}, {:.1}% of a core",
            time(summary.cpu_seconds),
            100.0 * summary.cpu_seconds / summary.elapsed.max(1e-9)
        ));
    }
    let warnings = summary.warnings.iter();
    lines.extend(warnings.map(|warning| format!("warning: {warning}")));
    lines
}

fn table(summary: &Summary) -> Vec<String> {
    let mut lines = vec![HEAD.to_owned()];
    lines.push(times("request", &summary.latency.stats()));
    if summary.is_corrected {
        lines.push(times("from sent", &summary.service.stats()));
    }
    lines.push(times("connect", &summary.connects()));
    lines.push(times("TTFB", &summary.first_bytes()));
    lines.push(row("req/s", &summary.rates_of_connections(), |value| {
        format!("{value:.2}")
    }));
    let rtt = |of: fn(&QuicRecord) -> f64| summary.quic(of);
    for (name, stats) in [
        ("min RTT", rtt(|quic| quic.min_rtt.as_secs_f64())),
        ("smoothed RTT", rtt(|quic| quic.smoothed_rtt.as_secs_f64())),
    ] {
        lines.extend(stats.map(|stats| times(name, &stats)));
    }
    for (name, stats) in [
        ("packets sent", rtt(|quic| to_f64(quic.packets_sent))),
        ("packets recv", rtt(|quic| to_f64(quic.packets_received))),
        ("packets lost", rtt(|quic| to_f64(quic.packets_lost))),
        ("GRO packets", rtt(per_receive_call)),
    ] {
        lines.extend(stats.map(|stats| counts(name, &stats)));
    }
    lines
}

/// Returns the mean number of datagrams received in one system call.
fn per_receive_call(quic: &QuicRecord) -> f64 {
    to_f64(quic.io.received_datagrams.unwrap_or(0)) / to_f64(quic.io.receive_calls.max(1))
}

fn times(name: &str, stats: &Stats) -> String {
    row(name, stats, time)
}

/// Returns a row of whole numbers, with decimals for the mean and the deviation.
fn counts(name: &str, stats: &Stats) -> String {
    let whole = |value: f64| format!("{value:.0}");
    let broken = |value: f64| format!("{value:.2}");
    line(
        name,
        [stats.min, stats.max, stats.median, stats.p95, stats.p99].map(whole),
        [stats.mean, stats.sd].map(broken),
        stats.within_sd,
    )
}

fn row(name: &str, stats: &Stats, show: impl Fn(f64) -> String) -> String {
    line(
        name,
        [stats.min, stats.max, stats.median, stats.p95, stats.p99].map(&show),
        [stats.mean, stats.sd].map(&show),
        stats.within_sd,
    )
}

fn line(name: &str, order: [String; 5], moments: [String; 2], within: f64) -> String {
    let [min, rest @ ..] = order;
    let mut line = format!("{name:<12}:{min:>11}");
    for cell in rest.iter().chain(&moments) {
        line += &format!("{cell:>12}");
    }
    line + &format!("{:>9.2}%", within * 100.0)
}

/// Formats a time as h2load does: `150us`, `53.98ms`, `2.02s`.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0}us", s * 1e6),
        s if s < 1.0 => format!("{:.2}ms", s * 1e3),
        s => format!("{s:.2}s"),
    }
}

/// Formats a size in powers of 1024 without the unit: `4.46M`.
fn size(bytes: f64) -> String {
    let (mut value, mut prefix) = (bytes, "");
    for larger in ["K", "M", "G", "T"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        prefix = larger;
    }
    if prefix.is_empty() {
        format!("{value:.0}")
    } else {
        format!("{value:.2}{prefix}")
    }
}

const HEAD: &str = "                 min         max         median      p95         p99         mean        sd         +/- sd";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_widths_of_h2load() {
        let stats = Stats {
            min: 150e-6,
            max: 0.05398,
            median: 435e-6,
            p95: 490e-6,
            p99: 813e-6,
            mean: 487e-6,
            sd: 0.00128,
            within_sd: 0.9959,
        };
        assert_eq!(
            times("request", &stats),
            "request     :      150us     53.98ms       435us       490us       813us       487us      1.28ms    99.59%"
        );
        let stats = Stats {
            min: 4092.0,
            max: 4099.0,
            median: 4092.0,
            p95: 4099.0,
            p99: 4099.0,
            mean: 4094.4,
            sd: 3.36,
            within_sd: 0.8,
        };
        assert_eq!(
            counts("packets recv", &stats),
            "packets recv:       4092        4099        4092        4099        4099     4094.40        3.36    80.00%"
        );
    }

    #[test]
    fn sizes_are_in_powers_of_1024() {
        assert_eq!(size(4_676_960.0), "4.46M");
        assert_eq!(size(817_120.0), "797.97K");
        assert_eq!(size(12.0), "12");
    }
}
