//! The report of a client, for humans: lines of text without colours.

use crate::{
    Agreed, DatagramFlow, End, Handshake, Interval, Latency, Network, Over, Plan, Remote, Report,
    Scenario, Side, Sum,
};

/// Returns a description of the measurement.
pub fn headline(remote: &Remote, plan: &Plan) -> String {
    let load = load(remote.over, &plan.scenario);
    let packets = match remote.over {
        Over::Quic => match remote.mtu {
            Some(mtu) => format!(", {mtu}-byte packets"),
            None => ", path MTU discovery".to_owned(),
        },
        Over::Tcp => String::new(),
    };
    format!(
        "{} over {} to {}: {load}, {}{packets}",
        plan.scenario.name(),
        remote.over.name(),
        remote.address,
        remote.congestion,
    )
}

/// Returns a description of what the clients do.
fn load(over: Over, scenario: &Scenario) -> String {
    match *scenario {
        Scenario::Bulk {
            connections,
            streams,
            ..
        } if over == Over::Tcp => plural(connections * streams, "connection"),
        Scenario::Bulk {
            connections,
            streams,
            ..
        } => {
            let each = if connections == 1 { "" } else { " each" };
            format!(
                "{}, {}{each}",
                plural(connections, "connection"),
                plural(streams, "stream")
            )
        }
        Scenario::Rr {
            in_flight,
            request_size,
            response_size,
            ..
        } => {
            format!(
                "{in_flight} in flight, {request_size}-byte requests, {response_size}-byte responses"
            )
        }
        Scenario::Latency {
            request_size,
            response_size,
            ..
        } => {
            format!("one at a time, {request_size}-byte requests, {response_size}-byte responses")
        }
        Scenario::Handshake {
            parallel,
            resume,
            early_data,
        } => {
            let kind = match (early_data, resume) {
                (true, _) => "resumed, with a 1-byte request in early data",
                (false, true) => "resumed",
                (false, false) => "full",
            };
            format!("{parallel} in parallel, {kind}")
        }
        Scenario::Datagram {
            direction,
            size,
            rate,
        } => {
            let rate = match rate {
                Some(rate) => courser_units::rate(rate / 8, 1.0),
                None => "any rate".to_owned(),
            };
            format!("{}, {size}-byte datagrams, {rate}", direction.name())
        }
        Scenario::Close => "one at a time".to_owned(),
    }
}

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
    lines.extend(report.network.as_ref().map(network));
    lines.extend(results(&report.end, report.settings.scenario));
    lines.extend(report.end.latency.as_ref().map(latency));
    lines.extend(report.end.moves.map(|moves| format!("moves       {moves}")));
    lines.extend(table(&report.client, report.server.as_ref()));
    if report.server.is_none() {
        lines.push("the server's counters are unknown: only courser reports them".to_owned());
    }
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
    let one = |what: &str, sum: Sum| {
        format!(
            "{what:<12}{} in {}, {}",
            courser_units::size(sum.bytes),
            courser_units::seconds(sum.seconds),
            courser_units::rate(sum.bytes, sum.seconds),
        )
    };
    if let Some(datagrams) = end.datagrams {
        let flows = [
            ("upload", datagrams.upload),
            ("download", datagrams.download),
        ];
        let lines = flows.map(|(name, flow)| flow.map(|flow| datagram_flow(name, &flow)));
        return lines.into_iter().flatten().flatten().collect();
    }
    match (end.sum_sent, end.sum_sent_bidir_reverse) {
        (Some(up), Some(down)) => vec![one("upload", up), one("download", down)],
        (Some(sum), None) => vec![one(scenario.name(), sum)],
        _ => {
            let resumed = end.resumed.filter(|resumed| *resumed > 0);
            let accepted = end.early_accepted;
            let accepted = accepted.map_or(String::new(), |count| {
                format!(", early data accepted on {count}")
            });
            vec![
                format!(
                    "{:<12}{} in {}, {}{}",
                    scenario.unit(),
                    end.count.unwrap_or(0),
                    courser_units::seconds(end.seconds),
                    courser_units::per_second(end.per_second.unwrap_or(0.0)),
                    resumed
                        .map(|count| format!(", {count} resumed"))
                        .unwrap_or_default(),
                ) + &accepted,
            ]
        }
    }
}

/// Returns the two lines of datagrams in one direction.
fn datagram_flow(name: &str, flow: &DatagramFlow) -> [String; 2] {
    let unsent = if flow.unsent > 0 {
        format!(", {} dropped before", flow.unsent)
    } else {
        String::new()
    };
    [
        format!(
            "{name:<12}{} sent in {}, {}{unsent}",
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

/// Returns a time in a unit that suits it.
pub fn micros(micros: f64) -> String {
    courser_units::seconds(micros / 1e6)
}

/// Returns the costs of both ends, with a header.
fn table(client: &Side, server: Option<&Side>) -> Vec<String> {
    let header = [
        "",
        "cpu",
        "s/GB",
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
    let from = |read: fn(crate::ConnectionCounters) -> String| of.map_or(NOTHING.to_owned(), read);
    vec![
        name.to_owned(),
        courser_units::seconds(side.cpu_seconds),
        // The cost of a request is more useful than that of its bytes.
        number(
            side.cpu_seconds_per_gb
                .filter(|_| side.cpu_us_each.is_none()),
        ),
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

/// Returns datagrams per call, or bytes per call where the kernel makes the packets.
fn per_call(datagrams: Option<f64>, bytes: u64, calls: u64) -> String {
    match (datagrams, bytes.checked_div(calls)) {
        (Some(datagrams), _) => courser_units::three_digits(datagrams),
        (None, Some(bytes)) => courser_units::size(bytes),
        (None, None) => NOTHING.to_owned(),
    }
}

fn plural(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
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
    fn absurd_figures_of_a_server_do_no_harm() {
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

    #[test]
    fn one_connection_is_not_plural() {
        assert_eq!(plural(1, "stream"), "1 stream");
        assert_eq!(plural(2, "stream"), "2 streams");
    }
}
