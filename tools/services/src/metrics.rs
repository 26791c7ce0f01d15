//! Metrics for Prometheus.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use courser::files::{self, Files};
use courser::server::{AcmeStats, Cause, Protocol, ProtocolStats, ServerHandle, ServerStats};
use courser_units::to_f64;
use http::Method;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeLabelSet, EncodeMetric, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::access_log::AccessLog;
use crate::exchange::Exchange;
use crate::proxy::{Proxy, UpstreamStats};

/// Metrics of requests and of the server in the text format of OpenMetrics.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter<u64, AtomicU64>>,
    durations: Family<ProtocolLabel, Histogram, fn() -> Histogram>,
    bytes: Family<ProtocolLabel, Counter<u64, AtomicU64>>,
    incomplete: Family<ProtocolLabel, Counter<u64, AtomicU64>>,
    causes: Family<CauseLabel, Counter<u64, AtomicU64>>,
    upstream: Option<Proxy>,
    /// The metrics of requests without a protocol, then those of [`Protocol::ALL`].
    by_protocol: [OnceLock<ProtocolMetrics>; 1 + Protocol::ALL.len()],
}

/// Labels that have few values each, so that text from clients creates no series.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    protocol: &'static str,
    method: &'static str,
    code: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CauseLabel {
    cause: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ProtocolLabel {
    protocol: &'static str,
}

impl Metrics {
    /// Creates the metrics of a server, its QUIC connections, its access log, and its files or its connections to an
    /// upstream server.
    pub fn new(
        handle: ServerHandle,
        connections: &courser::observe::Metrics,
        log: Option<AccessLog>,
        files: Option<Files>,
        upstream: Option<Proxy>,
    ) -> Arc<Self> {
        let durations: fn() -> Histogram = || Histogram::new(BOUNDS);
        let mut metrics = Self {
            registry: Registry::with_prefix("courser"),
            requests: Family::default(),
            durations: Family::new_with_constructor(durations),
            bytes: Family::default(),
            incomplete: Family::default(),
            causes: Family::default(),
            upstream: upstream.clone(),
            by_protocol: Default::default(),
        };
        let registry = &mut metrics.registry;
        registry.register(
            "http_requests",
            "Requests answered",
            metrics.requests.clone(),
        );
        registry.register_with_unit(
            "http_request_duration",
            "Time from the request header section to the end of the response",
            Unit::Seconds,
            metrics.durations.clone(),
        );
        registry.register_with_unit(
            "http_response_content",
            "Bytes of response content",
            Unit::Bytes,
            metrics.bytes.clone(),
        );
        registry.register(
            "http_responses_incomplete",
            "Responses that were not completed",
            metrics.incomplete.clone(),
        );
        registry.register(
            "http_responses_by_cause",
            "Responses that the server made itself or aborted, by cause",
            metrics.causes.clone(),
        );
        registry.register_collector(Box::new(Server {
            handle,
            log,
            files,
            upstream,
        }));
        registry.register_collector(connections.collector());
        Arc::new(metrics)
    }

    /// Counts a completed request.
    pub(crate) fn record(&self, exchange: &Exchange) {
        let protocol = exchange.protocol.map_or("none", Protocol::name);
        let index = exchange.protocol.map_or(0, |it| 1 + it as usize);
        let of = self.by_protocol[index].get_or_init(|| ProtocolMetrics::new(self, protocol));
        of.requests(self, protocol, exchange).inc();
        of.durations.observe(exchange.took.as_secs_f64());
        of.bytes.inc_by(exchange.bytes);
        if let Some(cause) = exchange.cause.map(Cause::name) {
            self.causes.get_or_create(&CauseLabel { cause }).inc();
        }
        if !exchange.is_complete {
            self.incomplete
                .get_or_create(&ProtocolLabel { protocol })
                .inc();
        }
    }

    /// Returns the use of the connections to the upstream server, if there is one.
    pub(crate) fn upstream(&self) -> Option<UpstreamStats> {
        self.upstream.as_ref().map(Proxy::stats)
    }

    /// Returns all metrics in the text format of OpenMetrics.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Formatting to a string cannot fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}

/// The metrics of one protocol, which requests find without a hash or a lock.
#[derive(Debug)]
struct ProtocolMetrics {
    requests: [OnceLock<CodeCounters>; METHODS.len()],
    durations: Histogram,
    bytes: Counter<u64, AtomicU64>,
}

/// Counters of one method, indexed by status code minus 100.
type CodeCounters = Box<[OnceLock<Counter<u64, AtomicU64>>; CODES]>;

impl ProtocolMetrics {
    fn new(metrics: &Metrics, protocol: &'static str) -> Self {
        let label = ProtocolLabel { protocol };
        Self {
            requests: Default::default(),
            durations: metrics.durations.get_or_create(&label).clone(),
            bytes: metrics.bytes.get_or_create(&label).clone(),
        }
    }

    fn requests(
        &self,
        metrics: &Metrics,
        protocol: &'static str,
        exchange: &Exchange,
    ) -> &Counter<u64, AtomicU64> {
        let method = method_index(&exchange.method);
        let codes = self.requests[method].get_or_init(|| Box::new([const { OnceLock::new() }; _]));
        let code = exchange.status.as_u16();
        // `http::StatusCode` allows 100 to 999.
        codes[usize::from(code - 100)].get_or_init(|| {
            let labels = RequestLabels {
                protocol,
                method: METHODS[method],
                code,
            };
            metrics.requests.get_or_create(&labels).clone()
        })
    }
}

/// Number of possible status codes.
const CODES: usize = 900;

/// The labels of methods. The last one stands for all others.
const METHODS: [&str; 10] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "other",
];

fn method_index(method: &Method) -> usize {
    let other = METHODS.len() - 1;
    let known = METHODS[..other]
        .iter()
        .position(|known| *known == method.as_str());
    known.unwrap_or(other)
}

/// Collects the counters of the server each time the metrics are read.
#[derive(Debug)]
struct Server {
    handle: ServerHandle,
    log: Option<AccessLog>,
    files: Option<Files>,
    upstream: Option<Proxy>,
}

impl Collector for Server {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let stats = self.handle.stats();
        let mut out = Out(&mut encoder);
        self.protocols(&mut out, &stats)?;
        self.quic(&mut out, &stats)?;
        out.counter(
            "tcp_received_bytes",
            "Bytes received over TCP",
            stats.tcp.bytes_received,
        )?;
        out.counter(
            "tcp_sent_bytes",
            "Bytes sent over TCP",
            stats.tcp.bytes_sent,
        )?;
        let failed = stats.tcp.handshakes_failed;
        out.counter(
            "tcp_handshakes_failed",
            "TLS handshakes over TCP that failed",
            failed,
        )?;
        out.counter(
            "connections_refused",
            "Connections rejected because of the limit",
            stats.refused,
        )?;
        out.counter(
            "requests_misdirected",
            "Requests answered with 421 because the certificate does not name their host",
            stats.requests_misdirected,
        )?;
        encode_refused_requests(&mut out, &stats)?;
        let refused = stats.refusals.by_reason();
        out.counters_by("refused", "Clients refused", "reason", &refused)?;
        let busy = f64::from(u8::from(stats.busy));
        out.gauge("busy", "1 while new clients are refused", busy)?;
        out.gauge(
            "ready",
            "1 while the server accepts new clients",
            f64::from(u8::from(stats.ready)),
        )?;
        let stopped = stats.stopped_tasks.len() as f64;
        let help = "Background tasks that have ended and were not restarted yet";
        out.gauge("stopped_tasks", help, stopped)?;
        out.counter("task_ends", "Ends of background tasks", stats.task_ends)?;
        let draining = f64::from(u8::from(stats.draining));
        out.gauge("draining", "1 while the server drains", draining)?;
        if let Some(log) = &self.log {
            let dropped = log.dropped();
            out.counter(
                "access_log_dropped",
                "Access log lines that were dropped",
                dropped,
            )?;
        }
        if let Some(files) = &self.files {
            encode_files(&mut out, &files.stats())?;
        }
        if let Some(upstream) = &self.upstream {
            encode_upstream(&mut out, upstream.stats())?;
        }
        self.certificates(&mut out, stats.acme.as_ref())?;
        Ok(())
    }
}

fn encode_acme(out: &mut Out<'_, '_>, acme: &AcmeStats) -> std::fmt::Result {
    out.counter(
        "acme_attempts",
        "Attempts to obtain a certificate",
        acme.attempts,
    )?;
    out.counter(
        "acme_failures",
        "Attempts to obtain a certificate that have failed",
        acme.failures,
    )?;
    out.counter(
        "acme_certificates",
        "Certificates that were obtained",
        acme.issued,
    )?;
    if let Some(next) = acme.next_attempt {
        let at = next.duration_since(UNIX_EPOCH).unwrap_or_default();
        let help = "Next attempt to obtain a certificate, in seconds since 1970";
        out.gauge("acme_next_attempt_seconds", help, at.as_secs_f64())?;
    }
    Ok(())
}

impl Server {
    fn certificates(&self, out: &mut Out<'_, '_>, acme: Option<&AcmeStats>) -> std::fmt::Result {
        let certificates = self.handle.certificates();
        if let Some(first) = certificates.iter().map(|it| it.not_after).min() {
            let until = first.duration_since(UNIX_EPOCH).unwrap_or_default();
            let help = "Expiry of the certificate that expires first, in seconds since 1970";
            out.gauge("certificate_not_after_seconds", help, until.as_secs_f64())?;
        }
        let now = SystemTime::now();
        let expiring = certificates
            .iter()
            .filter(|it| it.expires_soon(now))
            .count();
        let help = "Certificates that have expired, or expire soon and were not renewed";
        out.gauge("certificates_expiring", help, expiring as f64)?;
        // Without ACME too, so that an alarm on failures has something to watch.
        encode_acme(out, acme.unwrap_or(&AcmeStats::default()))
    }

    fn protocols(&self, out: &mut Out<'_, '_>, stats: &ServerStats) -> std::fmt::Result {
        let each = |count: fn(&ProtocolStats) -> u64| {
            Protocol::ALL.map(|protocol| (protocol.name(), count(stats.of(protocol))))
        };
        let open = each(|it| it.connections_open);
        out.gauges("connections_open", "Open connections", open)?;
        let in_flight = each(|it| it.requests_in_flight);
        out.gauges("requests_in_flight", "Requests in progress", in_flight)?;
        let all = each(|it| it.connections);
        out.counters("connections", "Connections accepted", all)
    }

    fn quic(&self, out: &mut Out<'_, '_>, stats: &ServerStats) -> std::fmt::Result {
        let quic = stats.quic;
        out.counter(
            "quic_handshakes",
            "QUIC handshakes completed",
            quic.handshakes,
        )?;
        let seconds = quic.handshake_time.as_secs_f64();
        let help = "Total duration of QUIC handshakes";
        out.counter("quic_handshakes_duration_seconds", help, seconds)?;
        let failed = stats.quic_handshakes_failed;
        out.counter(
            "quic_handshakes_failed",
            "QUIC handshakes that failed",
            failed,
        )?;
        out.counter("quic_packets_sent", "QUIC packets sent", quic.packets_sent)?;
        out.counter(
            "quic_packets_received",
            "QUIC packets received",
            quic.packets_received,
        )?;
        out.counter(
            "quic_packets_lost",
            "QUIC packets declared lost",
            quic.packets_lost,
        )?;
        let late = quic.packets_spuriously_lost;
        out.counter(
            "quic_packets_spuriously_lost",
            "QUIC packets declared lost that arrived late",
            late,
        )?;
        out.counter("quic_ptos", "Probe timeouts", quic.ptos)?;
        let cuts = quic.congestion_events;
        out.counter(
            "quic_congestion_events",
            "Congestion window reductions",
            cuts,
        )?;
        let accepted = [
            ("accepted", quic.early_data_accepted),
            ("refused", quic.early_data_refused),
        ];
        let help = "QUIC connections with early data (0-RTT)";
        out.counters_by("early_data_connections", help, "result", &accepted)?;
        let processed = [
            ("accepted", stats.early_requests),
            ("too_early", stats.requests_too_early),
        ];
        let help = "Requests in early data (0-RTT)";
        out.counters_by("early_data_requests", help, "result", &processed)?;
        let help = "Connections whose early data saved no time because no token validated the client's address";
        let without_token = stats.early_data_without_token;
        out.counter("early_data_without_token", help, without_token)?;
        self.shards(out)?;
        self.sockets(out, stats)
    }

    /// Encodes the metrics that show how evenly the work is distributed among the shards.
    fn shards(&self, out: &mut Out<'_, '_>) -> std::fmt::Result {
        let each: Vec<_> = self
            .handle
            .shard_stats()
            .into_iter()
            .map(|it| (it.address.to_string(), it.shard.to_string(), it.quic))
            .collect();
        let of = |count: fn(&courser::EndpointStats) -> u64| {
            let values = each.iter().map(move |(address, shard, stats)| {
                let labels = [("address", address.as_str()), ("shard", shard.as_str())];
                (labels, count(stats))
            });
            values.collect::<Vec<_>>()
        };
        let help = "Open connections of each shard";
        let open = of(|it| it.connections as u64);
        out.labelled_gauges("quic_shard_connections", help, &open)?;
        let help = "Connections that each shard accepted";
        out.labelled("quic_shard_accepted", help, &of(|it| it.accepted))?;
        let help = "Datagrams that each shard forwarded to the shard of their connection";
        out.labelled("quic_shard_handed_on", help, &of(|it| it.strays_sent))?;
        let help = "Datagrams that each shard received from other shards";
        out.labelled("quic_shard_taken_over", help, &of(|it| it.strays_received))
    }

    fn memory(out: &mut Out<'_, '_>, stats: &ServerStats) -> std::fmt::Result {
        let endpoints = || stats.listeners.iter().filter_map(|listener| listener.quic);
        let sum = |count: fn(courser::EndpointStats) -> u64| endpoints().map(count).sum::<u64>();
        let help = "Memory held for clients over QUIC";
        out.gauge("quic_memory_bytes", help, sum(|it| it.memory_used) as f64)?;
        let help = "Memory that may be held for clients over QUIC";
        let budget = sum(|it| it.memory_budget) as f64;
        out.gauge("quic_memory_limit_bytes", help, budget)?;
        let help = "Clients refused because the memory limit was reached";
        let refused = sum(|it| it.refused_for_memory);
        out.counter("quic_refused_for_memory", help, refused)?;
        let help = "Connections closed because the memory limit was reached";
        let closed = sum(|it| it.closed_for_memory);
        out.counter("quic_closed_for_memory", help, closed)?;
        let help = "Estimated memory of connections over TCP, without their requests";
        out.gauge("tcp_memory_bytes", help, stats.tcp.memory as f64)?;
        let help = "Estimated memory of requests in progress";
        out.gauge("requests_memory_bytes", help, stats.requests_memory as f64)?;
        let help = "Requests refused because the memory limit was reached";
        let refused = stats.requests_refused_for_memory;
        out.counter("requests_refused_for_memory", help, refused)?;
        let help = "Connections closed at the memory limit because they held the most memory";
        let closed = stats.connections_closed_for_memory;
        out.counter("connections_closed_for_memory", help, closed)
    }

    fn sockets(&self, out: &mut Out<'_, '_>, stats: &ServerStats) -> std::fmt::Result {
        let endpoints = || stats.listeners.iter().filter_map(|listener| listener.quic);
        let sum = |count: fn(courser::EndpointStats) -> u64| endpoints().map(count).sum::<u64>();
        out.counter(
            "quic_retries_sent",
            "Retry packets sent",
            sum(|it| it.retries_sent),
        )?;
        out.counter("quic_refused", "Clients refused", sum(|it| it.refused))?;
        let dropped = sum(|it| it.datagrams_dropped);
        out.counter(
            "quic_datagrams_dropped",
            "Datagrams that match no connection",
            dropped,
        )?;
        let strays = sum(|it| it.strays_sent);
        let help = "Datagrams forwarded to the shard of their connection";
        out.counter("quic_datagrams_handed_on", help, strays)?;
        let disabled = sum(|it| it.fallbacks.batches + it.fallbacks.ecn + it.fallbacks.quic_bit);
        let help = "Optional packet features disabled on a path that drops packets with them";
        out.counter("quic_features_given_up", help, disabled)?;
        let dropped = sum(|it| it.strays_dropped);
        let help = "Datagrams dropped because the queue between two shards was full";
        out.counter("quic_handed_on_dropped", help, dropped)?;
        Self::memory(out, stats)?;
        let sockets = || stats.listeners.iter().filter_map(|listener| listener.udp);
        let sum = |count: fn(courser::Counters) -> u64| sockets().map(count).sum::<u64>();
        out.counter(
            "udp_sent_bytes",
            "Bytes sent over UDP",
            sum(|it| it.sent_bytes),
        )?;
        out.counter(
            "udp_received_bytes",
            "Bytes received over UDP",
            sum(|it| it.received_bytes),
        )?;
        let overflows = || stats.listeners.iter().filter_map(|it| it.udp_overflow);
        // Some systems do not report overflows.
        if overflows().next().is_some() {
            out.counter(
                "udp_dropped_datagrams",
                "Received datagrams that the kernel dropped because a receive buffer was full",
                overflows().sum::<u64>(),
            )?;
        }
        out.counter(
            "udp_send_calls",
            "System calls that sent datagrams",
            sum(|it| it.send_calls),
        )?;
        out.counter(
            "udp_receive_calls",
            "System calls that received datagrams",
            sum(|it| it.receive_calls),
        )
    }
}

fn encode_refused_requests(out: &mut Out<'_, '_>, stats: &ServerStats) -> std::fmt::Result {
    let causes = stats.requests_by_cause.iter();
    let causes: Vec<_> = causes
        .map(|(cause, count)| (cause.name(), *count))
        .collect();
    out.counters_by(
        "http_requests_refused",
        "Requests that the server answered itself before they reached files or the proxy",
        "cause",
        &causes,
    )
}

fn encode_files(out: &mut Out<'_, '_>, stats: &files::Stats) -> std::fmt::Result {
    out.counter(
        "files_memory_hits",
        "Requests for files that were answered from memory",
        stats.hits,
    )?;
    out.counter(
        "files_memory_misses",
        "Requests for files that were read from disk",
        stats.misses,
    )?;
    out.counter(
        "files_waits",
        "Requests for files that waited for the disk or a compressor",
        stats.waited,
    )?;
    out.counter(
        "files_exhausted",
        "Requests for files refused because file descriptors or memory ran out",
        stats.exhausted,
    )?;
    out.counter(
        "files_busy",
        "Requests for files refused or aborted because no thread that may wait for a disk became free in time",
        stats.busy,
    )?;
    out.gauge(
        "files_threads",
        "Threads that wait for a disk or compress a file",
        to_f64(stats.threads as u64),
    )?;
    out.gauge(
        "files_waiting",
        "Requests that wait for a thread that may wait for a disk",
        to_f64(stats.waiting as u64),
    )?;
    out.gauge(
        "files_memory_bytes",
        "Memory held by cached files",
        to_f64(stats.memory),
    )?;
    out.gauge(
        "files_in_memory",
        "Cached files",
        to_f64(stats.files as u64),
    )
}

fn encode_upstream(out: &mut Out<'_, '_>, stats: UpstreamStats) -> std::fmt::Result {
    for (name, help, value) in [
        (
            "upstream_connections_open",
            "Open connections to the upstream server",
            stats.connections_open,
        ),
        (
            "upstream_connections_limit",
            "Largest number of connections to the upstream server",
            stats.connections_limit,
        ),
        (
            "upstream_requests",
            "Requests and tunnels in progress at the upstream server",
            stats.requests,
        ),
        (
            "upstream_waiting",
            "Requests that wait for a connection to the upstream server",
            stats.waiting,
        ),
        (
            "upstream_tunnels",
            "Open tunnels to the upstream server",
            stats.tunnels,
        ),
    ] {
        out.gauge(name, help, to_f64(value as u64))?;
    }
    out.counter(
        "upstream_refused",
        "Requests refused because too many waited for a connection to the upstream server",
        stats.refused,
    )?;
    out.counter(
        "upstream_queue_timeouts",
        "Requests refused because they waited too long for a connection to the upstream server",
        stats.timed_out,
    )?;
    out.counter(
        "upstream_tunnels_idle",
        "Tunnels closed because they were idle",
        stats.tunnels_idle,
    )
}

/// Encodes the metrics that are collected when they are read.
struct Out<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Out<'_, '_> {
    fn counter<N>(&mut self, name: &str, help: &str, value: N) -> std::fmt::Result
    where
        N: EncodeCounterValue,
        ConstCounter<N>: EncodeMetric,
    {
        let encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(encoder)
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> std::fmt::Result {
        let encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(encoder)
    }

    fn counters(&mut self, name: &str, help: &str, values: PerProtocol) -> std::fmt::Result {
        self.counters_by(name, help, "protocol", &values)
    }

    /// Encodes a counter with one series for each value of a label.
    fn counters_by(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[(&'static str, u64)],
    ) -> std::fmt::Result {
        let mut encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        for &(of, value) in values {
            let label = [(label, of)];
            ConstCounter::new(value).encode(encoder.encode_family(&label)?)?;
        }
        Ok(())
    }

    /// Encodes a counter with one series for each set of labels.
    fn labelled(&mut self, name: &str, help: &str, values: &[Labelled<'_>]) -> std::fmt::Result {
        let mut encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            ConstCounter::new(*value).encode(encoder.encode_family(labels)?)?;
        }
        Ok(())
    }

    /// Encodes a gauge with one series for each set of labels.
    fn labelled_gauges(
        &mut self,
        name: &str,
        help: &str,
        values: &[Labelled<'_>],
    ) -> std::fmt::Result {
        let mut encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            ConstGauge::new(to_f64(*value)).encode(encoder.encode_family(labels)?)?;
        }
        Ok(())
    }

    fn gauges(&mut self, name: &str, help: &str, values: PerProtocol) -> std::fmt::Result {
        let mut encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (protocol, value) in values {
            let label = [("protocol", protocol)];
            ConstGauge::new(to_f64(value)).encode(encoder.encode_family(&label)?)?;
        }
        Ok(())
    }
}

/// Two labels and the value of their series.
type Labelled<'a> = ([(&'static str, &'a str); 2], u64);

type PerProtocol = [(&'static str, u64); 3];

/// Bucket bounds of request durations in seconds, from a cached file on the same machine to the time at which
/// users give up.
const BOUNDS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0,
];
