//! Formats the report of a client as lines of text without colours.

mod headline;

use crate::{
    Agreed, DatagramFlow, Direction, End, Handshake, Interval, Latency, Network, NetworkPath,
    Percentiles, Report, Scenario, Side, Spread, Sum,
};

pub use self::headline::headline;
use self::headline::plural;

/// Returns the line of an interval.
pub fn interval(interval: &Interval) -> String {
    let bytes = interval.sent_bytes + interval.received_bytes;
    let mut line = format!(
        "{:6.2}-{:<6.2} s  {:>9}  {:>12}",
        interval.start,
        interval.end,
        courser_units::size(bytes),
        courser_units::rate(bytes, interval.end - interval.start),
    );
    if interval.count > 0 {
        let rate =
            courser_units::to_f64(interval.count) / (interval.end - interval.start).max(1e-9);
        line += &format!("  {:>10}", courser_units::per_second(rate));
    }
    if let (Some(lost), Some(rtt), Some(window)) = (
        interval.packets_lost,
        interval.rtt_us,
        interval.congestion_window,
    ) {
        let rtt = courser_units::seconds(rtt / 1e6);
        line += &format!(
            "  {lost} lost  rtt {rtt}  window {}",
            courser_units::size(window)
        );
    }
    line
}

/// Returns the lines of the report.
pub fn lines(report: &Report) -> Vec<String> {
    let mut lines = vec![handshake(&report.handshake)];
    lines.extend(report.settings.warm_up_seconds.map(warm_up));
    lines.extend(report.network.as_ref().map(network));
    lines.extend(report.network.iter().flat_map(|it| &it.paths).map(path));
    lines.extend(results(&report.end, report.settings.scenario));
    lines.extend(report.end.latency.as_ref().map(latency));
    lines.extend(spread(report));
    lines.extend(report.end.moves.map(|moves| format!("moves       {moves}")));
    lines.extend(table(&report.client, report.server.as_ref()));
    lines.extend(report.server_gap.map(|gap| gap.to_string()));
    lines
}

/// Returns the line of the handshake: `handshake   1.20 ms (full, X25519MLKEM768, AES-128-GCM)`.
fn handshake(handshake: &Handshake) -> String {
    let kind = if handshake.agreed.resumed {
        "resumed"
    } else {
        "full"
    };
    let time = courser_units::seconds(handshake.seconds);
    format!("handshake   {time} ({kind}, {})", agreed(&handshake.agreed))
}

/// Returns the line of the warm-up: `warm-up     2.00 s, not included below`.
fn warm_up(seconds: f64) -> String {
    let time = courser_units::seconds(seconds);
    format!("warm-up     {time}, not included below")
}

/// Returns the line of each distribution of throughput, if there were enough intervals:
/// `spread      p10 9.10 Gbit/s  p50 9.80 Gbit/s  p90 9.90 Gbit/s over 98 intervals of 100 ms`.
fn spread(report: &Report) -> Vec<String> {
    let spread = &report.end.spread;
    if spread.intervals < Spread::MIN_INTERVALS && !report.intervals.is_empty() {
        let (count, least) = (
            plural(spread.intervals as u64, "whole interval"),
            Spread::MIN_INTERVALS,
        );
        return vec![format!(
            "spread      unknown: {count}, at least {least} are needed"
        )];
    }
    let line = |name: &str, of: Option<Percentiles>, show: fn(f64) -> String| {
        let of = of?;
        let [p10, p50, p90] = [of.p10, of.p50, of.p90].map(show);
        let (count, length) = (
            spread.intervals,
            courser_units::seconds(spread.interval_seconds),
        );
        Some(format!(
            "spread      {name}p10 {p10}  p50 {p50}  p90 {p90} over {count} intervals of {length}"
        ))
    };
    let (up, down) = (
        spread.upload_bits_per_second,
        spread.download_bits_per_second,
    );
    let bits = courser_units::bits;
    let scenario = report.settings.scenario;
    let is_of_bytes = scenario.bulk().is_some() || matches!(scenario, Scenario::Datagram { .. });
    let lines = match (is_of_bytes, up.is_some() && down.is_some()) {
        (true, true) => vec![line("upload ", up, bits), line("download ", down, bits)],
        (true, false) => vec![line("", up.or(down), bits)],
        _ => vec![line("", spread.per_second, courser_units::per_second)],
    };
    lines.into_iter().flatten().collect()
}

/// Returns the line of a path: `path 1      10.0.0.2 to 10.9.0.1:4433: data, 38 % of all bytes, 12 packets lost, rtt 20.1 ms,
/// window 98 kB`.
fn path(path: &NetworkPath) -> String {
    let local = path.local.as_deref().unwrap_or("any");
    format!(
        "{:<12}{local} to {}: {}, {:.0} % of all bytes, {} packets lost, rtt {}, window {}",
        format!("path {}", path.id),
        path.remote,
        path.state,
        path.share * 100.0,
        path.packets_lost,
        courser_units::seconds(path.rtt_us / 1e6),
        courser_units::size(path.congestion_window),
    )
}

/// Returns the line of the features in use: `network     QUIC v1, GSO up to 64, GRO, ECN`.
fn network(network: &Network) -> String {
    let segmentation = match network.gso_segments {
        1 => "no GSO".to_owned(),
        segments => format!("GSO up to {segments}"),
    };
    let coalescing = if network.gro { "GRO" } else { "no GRO" };
    let marks = if network.ecn { "ECN" } else { "no ECN" };
    let version = &network.quic_version;
    format!("network     QUIC v{version}, {segmentation}, {coalescing}, {marks}")
}

/// Returns the negotiated algorithms: `X25519MLKEM768, AES-128-GCM`.
pub fn agreed(agreed: &Agreed) -> String {
    let words = [agreed.key_exchange.as_deref(), agreed.suite.as_deref()];
    words.map(|word| word.unwrap_or("?")).join(", ")
}

fn results(end: &End, scenario: Scenario) -> Vec<String> {
    let mut lines = transfers(end, scenario);
    let is_counted = match scenario {
        Scenario::Bulk { .. } => false,
        // Interrupted measurements lack the counts of both ends.
        Scenario::Datagram { .. } => end.datagrams.is_none(),
        _ => true,
    };
    if is_counted {
        lines.push(counted(end, scenario));
    }
    let flows = end.datagrams.unwrap_or_default();
    for (direction, flow) in [("upload", flows.upload), ("download", flows.download)] {
        let name = match scenario {
            Scenario::Mixed(_) => format!("{:<12}{direction}: ", "datagrams"),
            _ => format!("{direction:<12}"),
        };
        lines.extend(flow.iter().flat_map(|flow| datagram_flow(&name, flow)));
    }
    lines
}

/// Returns the line of each direction of bytes.
fn transfers(end: &End, scenario: Scenario) -> Vec<String> {
    let one = |what: &str, sum: Sum| {
        format!(
            "{what:<12}{} in {}, {}",
            courser_units::size(sum.bytes),
            courser_units::seconds(sum.seconds),
            courser_units::rate(sum.bytes, sum.seconds),
        )
    };
    match (end.sum_sent, end.sum_sent_bidir_reverse) {
        (Some(up), Some(down)) => vec![one("upload", up), one("download", down)],
        (Some(sum), None) => vec![one(scenario.bulk().map_or("", Direction::name), sum)],
        _ => Vec::new(),
    }
}

/// Returns the line of requests, handshakes, datagrams or closes.
fn counted(end: &End, scenario: Scenario) -> String {
    let resumed = end.resumed.filter(|resumed| *resumed > 0);
    let accepted = end.early_accepted;
    format!(
        "{:<12}{} in {}, {}{}{}",
        scenario.unit(),
        end.count.unwrap_or(0),
        courser_units::seconds(end.seconds),
        courser_units::per_second(end.per_second.unwrap_or(0.0)),
        resumed.map_or(String::new(), |count| format!(", {count} resumed")),
        accepted.map_or(String::new(), |count| format!(
            ", early data accepted on {count}"
        )),
    )
}

/// Returns the two lines of datagrams in one direction; the first begins with `name`.
fn datagram_flow(name: &str, flow: &DatagramFlow) -> [String; 2] {
    let unsent = if flow.unsent > 0 {
        format!(", {} dropped before", flow.unsent)
    } else {
        String::new()
    };
    [
        format!(
            "{name}{} sent in {}, {}{unsent}",
            flow.sent,
            courser_units::seconds(flow.seconds),
            courser_units::bits(flow.sent_bits_per_second),
        ),
        format!(
            "{:<12}{} received, {} lost ({:.2} %), {} reordered, {} duplicated, jitter {}, {}",
            "",
            flow.received,
            flow.lost,
            flow.lost_percent,
            flow.reordered,
            flow.duplicated,
            courser_units::seconds(flow.jitter_ms / 1e3),
            courser_units::bits(flow.bits_per_second),
        ),
    ]
}

/// Returns the line of latencies: `latency     p50 120 us  p90 ...`.
fn latency(latency: &Latency) -> String {
    let show = micros;
    format!(
        "latency     p50 {}  p90 {}  p99 {}  p99.9 {}  max {}  mean {}",
        show(latency.p50_us),
        show(latency.p90_us),
        show(latency.p99_us),
        show(latency.p999_us),
        show(latency.max_us),
        show(latency.mean_us),
    )
}

/// Formats a time in microseconds with a suitable unit.
pub fn micros(micros: f64) -> String {
    courser_units::seconds(micros / 1e6)
}

/// Returns the table of the costs at both ends, with a header.
fn table(client: &Side, server: Option<&Side>) -> Vec<String> {
    let header = [
        "",
        "cpu",
        "s/GB",
        "Mbit/s/%",
        "us/op",
        "sent/call",
        "recv/call",
        "acks/packet",
        "lost",
        "resent",
        "rtt",
        "window",
    ];
    let mut rows: Vec<Vec<String>> = vec![header.map(str::to_owned).to_vec()];
    rows.push(row("client", client));
    rows.extend(server.map(|server| row("server", server)));
    let columns = header.len();
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    // Columns without a value are left out.
    let is_used = |column: usize| column == 0 || rows[1..].iter().any(|row| row[column] != NOTHING);
    rows.iter()
        .map(|row| {
            let cells = row
                .iter()
                .enumerate()
                .filter(|(column, _)| is_used(*column))
                .map(|(column, cell)| match column {
                    0 => format!("{cell:<10}"),
                    _ => format!("  {cell:>width$}", width = widths[column]),
                });
            cells.collect::<String>().trim_end().to_owned()
        })
        .collect()
}

fn row(name: &str, side: &Side) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or(NOTHING.to_owned(), courser_units::three_digits);
    let of = side.connection;
    // The cost per request is more useful than the cost per byte of requests.
    let of_bytes = |value: Option<f64>| number(value.filter(|_| side.cpu_us_each.is_none()));
    let from = |read: fn(crate::ConnectionCounters) -> String| of.map_or(NOTHING.to_owned(), read);
    vec![
        name.to_owned(),
        courser_units::seconds(side.cpu_seconds),
        of_bytes(side.cpu_seconds_per_gb),
        of_bytes(side.mbits_per_second_per_cpu_percent),
        number(side.cpu_us_each),
        per_call(
            side.datagrams_per_send_call,
            side.io.sent_bytes,
            side.io.send_calls,
        ),
        per_call(
            side.datagrams_per_receive_call,
            side.io.received_bytes,
            side.io.receive_calls,
        ),
        side.acks_per_data_packet
            .map_or(NOTHING.to_owned(), |acks| format!("{acks:.3}")),
        from(|of| of.packets_lost.to_string()),
        from(|of| courser_units::size(of.bytes_retransmitted)),
        from(|of| micros(of.rtt_us)),
        from(|of| courser_units::size(of.congestion_window)),
    ]
}

/// Returns datagrams per call, or bytes per call over TCP, where the kernel creates the packets.
fn per_call(datagrams: Option<f64>, bytes: u64, calls: u64) -> String {
    match (datagrams, bytes.checked_div(calls)) {
        (Some(datagrams), _) => courser_units::three_digits(datagrams),
        (None, Some(bytes)) => courser_units::size(bytes),
        (None, None) => NOTHING.to_owned(),
    }
}

const NOTHING: &str = "-";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConnectionCounters;

    #[test]
    fn table_has_a_line_for_each_end_and_no_empty_columns() {
        let side = Side {
            cpu_seconds: 1.0,
            cpu_seconds_per_gb: Some(0.5),
            ..Side::default()
        };
        let lines = table(&side, Some(&side));
        assert_eq!(lines.len(), 3);
        assert!(
            lines[0].contains("s/GB") && !lines[0].contains("us/op"),
            "{}",
            lines[0]
        );
        assert!(lines[2].starts_with("server"), "{}", lines[2]);
    }

    #[test]
    fn extreme_figures_of_a_server_are_formatted() {
        let connection = ConnectionCounters {
            rtt_us: f64::MAX,
            congestion_window: u64::MAX,
            bytes_retransmitted: u64::MAX,
            ..ConnectionCounters::default()
        };
        let side = Side {
            cpu_seconds: f64::MAX,
            cpu_us_each: Some(-1.0),
            connection: Some(connection),
            ..Side::default()
        };
        assert_eq!(table(&side, Some(&side)).len(), 3);
    }

    #[test]
    fn features_in_use_are_one_line() {
        let mut features = Network {
            quic_version: "2".to_owned(),
            gso_segments: 64,
            gro: true,
            ecn: true,
            paths: Vec::new(),
        };
        assert_eq!(
            network(&features),
            "network     QUIC v2, GSO up to 64, GRO, ECN"
        );
        (features.gso_segments, features.gro, features.ecn) = (1, false, false);
        assert_eq!(
            network(&features),
            "network     QUIC v2, no GSO, no GRO, no ECN"
        );
    }
}
