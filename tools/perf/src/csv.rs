//! A measurement as CSV (RFC 4180, with lines that end in LF): a header, a row for each interval, and a summary.
//!
//! The columns are the same for all scenarios, protocols and kinds of rows. A cell without a value is empty. No
//! cell needs quotation marks.

use std::fmt::Display;
use std::fmt::Write as _;

use crate::datagram::DatagramFlow;
use crate::meter::Interval;
use crate::plan::{Plan, Scenario};
use crate::remote::{Over, Remote};
use crate::report::Report;
use crate::{Latency, Percentiles, Side};

/// The rows of one measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Csv {
    scenario: Scenario,
    over: Over,
}

impl Csv {
    /// Prepares the rows of a measurement.
    pub fn new(remote: &Remote, plan: &Plan) -> Self {
        Self {
            scenario: plan.scenario,
            over: remote.over,
        }
    }

    /// Returns the header, which names the columns.
    pub fn header() -> String {
        COLUMNS.map(|(name, _)| name).join(",")
    }

    /// Returns the row of an interval. It has the first columns only.
    pub fn interval(&self, interval: &Interval) -> String {
        let mut row = self.begin("interval", interval.start, interval.end);
        let seconds = interval.end - interval.start;
        row.moved(interval.sent_bytes, interval.received_bytes, seconds);
        row.counted(self.count(interval.count), seconds);
        row.cell(interval.packets_lost);
        row.micros(interval.rtt_us);
        row.cell(interval.congestion_window);
        row.end()
    }

    /// Returns the row of the whole measurement.
    pub fn summary(&self, report: &Report) -> String {
        let (end, client) = (&report.end, &report.client);
        let mut row = self.begin("summary", 0.0, end.seconds);
        row.moved(end.sent_bytes, end.received_bytes, end.seconds);
        row.counted(self.count(end.count.unwrap_or(0)), end.seconds);
        row.cell(client.connection.map(|it| it.packets_lost));
        row.micros(client.connection.map(|it| it.rtt_us));
        row.cell(client.connection.map(|it| it.congestion_window));
        row.latency(end.latency.as_ref());
        row.percentiles(end.spread.upload_bits_per_second);
        row.percentiles(end.spread.download_bits_per_second);
        row.cell(Some(end.spread.intervals));
        row.seconds(Some(end.spread.interval_seconds));
        for side in [Some(client), report.server.as_ref()] {
            row.cost(side, end.seconds);
        }
        let datagrams = end.datagrams.unwrap_or_default();
        row.datagrams(datagrams.upload.as_ref());
        row.datagrams(datagrams.download.as_ref());
        row.seconds(Some(report.settings.warm_up_seconds.unwrap_or(0.0)));
        row.cell(Some(report.interrupted));
        row.end()
    }

    /// Returns a count; `None` in scenarios that count bytes only.
    fn count(&self, count: u64) -> Option<u64> {
        let is_of_bytes = matches!(self.scenario, Scenario::Bulk { .. });
        (!is_of_bytes).then_some(count)
    }

    fn begin(&self, kind: &str, start: f64, end: f64) -> Row {
        let mut row = Row::default();
        row.cell(Some(kind));
        row.cell(Some(match self.scenario {
            // The name in reports has spaces.
            Scenario::Bulk { .. } if self.scenario.name().contains(' ') => "bidir",
            scenario => scenario.name(),
        }));
        row.cell(Some(match self.over {
            Over::Quic => "quic",
            Over::WebTransport => "webtransport",
            Over::Tcp => "tcp",
        }));
        row.seconds(Some(start));
        row.seconds(Some(end));
        row
    }
}

/// Returns the help text of `--csv`, which describes the columns.
pub fn help() -> String {
    let mut text =
        "Print results as CSV: a header, a row for each interval of --interval, and a summary\n\n\
                    Columns, empty where a value does not exist:\n"
            .to_owned();
    for (name, meaning) in COLUMNS {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {name}: {meaning}");
    }
    text.trim_end().to_owned()
}

/// A row that is being written.
#[derive(Debug, Default)]
struct Row {
    text: String,
    cells: usize,
}

impl Row {
    fn cell(&mut self, value: Option<impl Display>) {
        if self.cells > 0 {
            self.text.push(',');
        }
        self.cells += 1;
        if let Some(value) = value {
            // Writing to a string does not fail.
            let _ = write!(self.text, "{value}");
        }
    }

    fn seconds(&mut self, value: Option<f64>) {
        self.cell(value.map(|seconds| format!("{seconds:.6}")));
    }

    fn micros(&mut self, value: Option<f64>) {
        self.cell(value.map(|micros| format!("{micros:.1}")));
    }

    fn rate(&mut self, value: Option<f64>) {
        self.cell(value.map(|rate| format!("{rate:.0}")));
    }

    fn moved(&mut self, sent: u64, received: u64, seconds: f64) {
        self.cell(Some(sent));
        self.cell(Some(received));
        for bytes in [sent, received] {
            self.rate(Some(courser_units::bits_per_second(bytes, seconds)));
        }
    }

    fn counted(&mut self, count: Option<u64>, seconds: f64) {
        self.cell(count);
        let each = |count| courser_units::to_f64(count) / seconds.max(1e-9);
        self.cell(count.map(|count| format!("{:.1}", each(count))));
    }

    fn latency(&mut self, latency: Option<&Latency>) {
        self.micros(latency.map(|it| it.p50_us));
        self.micros(latency.map(|it| it.p90_us));
        self.micros(latency.map(|it| it.p99_us));
        self.micros(latency.map(|it| it.max_us));
    }

    fn percentiles(&mut self, of: Option<Percentiles>) {
        self.rate(of.map(|it| it.p10));
        self.rate(of.map(|it| it.p50));
        self.rate(of.map(|it| it.p90));
    }

    fn cost(&mut self, side: Option<&Side>, seconds: f64) {
        let percent = |side: &Side| side.cpu_seconds * 100.0 / seconds.max(1e-9);
        self.cell(side.map(|side| format!("{:.2}", percent(side))));
        let efficiency = side.and_then(|side| side.mbits_per_second_per_cpu_percent);
        self.cell(efficiency.map(|value| format!("{value:.3}")));
        self.cell(side.and_then(|side| side.io.kernel_drops));
    }

    fn datagrams(&mut self, flow: Option<&DatagramFlow>) {
        self.cell(flow.map(|it| it.sent));
        self.cell(flow.map(|it| it.lost));
        self.cell(flow.map(|it| format!("{:.3}", it.jitter_ms)));
    }

    /// Adds empty cells for the other columns.
    fn end(mut self) -> String {
        debug_assert!(self.cells <= COLUMNS.len());
        while self.cells < COLUMNS.len() {
            self.cell(None::<&str>);
        }
        self.text
    }
}

/// The columns and their meaning. Rows of intervals end with `congestion_window`.
const COLUMNS: [(&str, &str); 40] = [
    ("row", "'interval' or 'summary'"),
    (
        "scenario",
        "the scenario; 'bidir' for bytes in both directions",
    ),
    ("transport", "'quic' or 'tcp'"),
    ("start_seconds", "beginning, without the warm-up"),
    ("end_seconds", "end"),
    ("sent_bytes", "bytes sent by the client"),
    ("received_bytes", "bytes received by the client"),
    ("sent_bits_per_second", "mean rate"),
    ("received_bits_per_second", "mean rate"),
    (
        "count",
        "requests, handshakes, datagrams or closes, if the scenario counts them",
    ),
    ("count_per_second", "mean rate"),
    ("packets_lost", "packets that the client declared lost"),
    ("rtt_us", "smoothed round-trip time at the end"),
    (
        "congestion_window",
        "bytes at the end, summed over the client's connections",
    ),
    ("latency_p50_us", "median duration of what is counted"),
    ("latency_p90_us", "90th percentile"),
    ("latency_p99_us", "99th percentile"),
    ("latency_max_us", "longest"),
    (
        "upload_p10_bits_per_second",
        "10th percentile over intervals",
    ),
    ("upload_p50_bits_per_second", "median"),
    ("upload_p90_bits_per_second", "90th percentile"),
    (
        "download_p10_bits_per_second",
        "10th percentile over intervals",
    ),
    ("download_p50_bits_per_second", "median"),
    ("download_p90_bits_per_second", "90th percentile"),
    (
        "intervals",
        "number of intervals for the percentiles, which need at least 5",
    ),
    ("interval_seconds", "length of an interval"),
    (
        "client_cpu_percent",
        "CPU time of the client, 100 for one core",
    ),
    (
        "client_mbits_per_second_per_cpu_percent",
        "Mbit/s per percent of CPU time; empty for 'mixed'",
    ),
    (
        "client_kernel_drops",
        "datagrams dropped at the client's socket",
    ),
    (
        "server_cpu_percent",
        "the same for the server, if it reports counters",
    ),
    (
        "server_mbits_per_second_per_cpu_percent",
        "the same for the server",
    ),
    (
        "server_kernel_drops",
        "datagrams dropped at the server's socket",
    ),
    ("upload_datagrams_sent", "datagrams that left the client"),
    (
        "upload_datagrams_lost",
        "datagrams among these that did not arrive",
    ),
    ("upload_jitter_ms", "interarrival jitter (RFC 3550)"),
    ("download_datagrams_sent", "datagrams that left the server"),
    (
        "download_datagrams_lost",
        "datagrams among these that did not arrive",
    ),
    ("download_jitter_ms", "interarrival jitter"),
    (
        "warm_up_seconds",
        "time before the measurement, which no other column includes",
    ),
    ("interrupted", "'true' if the measurement was ended early"),
];

#[cfg(test)]
mod tests;
