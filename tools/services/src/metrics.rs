//! Metrics for Prometheus.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use courser::files::{self, Files};
use courser::server::Cause;
use courser::webtransport::{Monitor, MonitorStats};
use courser_units::to_f64;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::access_log::AccessLog;
use crate::exchange::Exchange;
use crate::forward::{Forward, ForwardStats, PassedStats};
use crate::proxy::{Proxy, SessionProxy, SessionProxyStats, UpstreamStats};

/// Metrics of a site in the text format of OpenMetrics, with those of its server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    causes: Arc<Causes>,
    sources: MetricsSources,
}

/// The parts of a site that have metrics.
#[derive(Clone, Debug, Default)]
pub struct MetricsSources {
    /// The access log.
    pub log: Option<AccessLog>,
    /// The files that are served.
    pub files: Option<Files>,
    /// The connections to an upstream server.
    pub upstream: Option<Proxy>,
    /// Sessions of WebTransport.
    pub sessions: Option<Monitor>,
    /// Sessions that are forwarded to an upstream server.
    pub session_proxy: Option<SessionProxy>,
    /// Tunnels and requests of a forward proxy.
    pub forward: Option<Forward>,
}

impl Metrics {
    /// Creates the metrics of the parts of a site. `server` has those of
    /// the server and its requests ([`Server::metrics`](courser::Server::metrics)).
    pub fn new(server: &courser::observe::Metrics, sources: MetricsSources) -> Arc<Self> {
        let mut metrics = Self {
            registry: Registry::with_prefix("courser"),
            causes: Arc::default(),
            sources: sources.clone(),
        };
        let registry = &mut metrics.registry;
        registry.register_collector(Box::new(Site {
            causes: metrics.causes.clone(),
            sources,
        }));
        registry.register_collector(server.collector());
        Arc::new(metrics)
    }

    /// Counts a completed request. The server has counted what it knows of it.
    pub(crate) fn record(&self, exchange: &Exchange) {
        if let Some(cause) = exchange.cause {
            self.causes.add(cause);
        }
    }

    /// Returns the use of the connections to the upstream server, if there is one.
    pub(crate) fn upstream(&self) -> Option<UpstreamStats> {
        self.sources.upstream.as_ref().map(Proxy::stats)
    }

    /// Returns the use of the proxy of sessions, if there is one.
    pub(crate) fn session_proxy(&self) -> Option<SessionProxyStats> {
        self.sources.session_proxy.as_ref().map(SessionProxy::stats)
    }

    /// Returns all metrics in the text format of OpenMetrics.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Formatting to a string cannot fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}

/// Responses by cause.
#[derive(Debug)]
struct Causes([AtomicU64; Cause::ALL.len()]);

impl Default for Causes {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; _])
    }
}

impl Causes {
    fn add(&self, cause: Cause) {
        self.0[cause as usize].fetch_add(1, Relaxed);
    }

    /// Returns the causes that have occurred.
    fn occurred(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.iter().map(|count| count.load(Relaxed));
        let all = Cause::ALL.iter().map(|cause| cause.name()).zip(counts);
        all.filter(|(_, count)| *count > 0).collect()
    }
}

/// Collects the counters of a site each time the metrics are read.
#[derive(Debug)]
struct Site {
    causes: Arc<Causes>,
    sources: MetricsSources,
}

impl Collector for Site {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut out = Out(&mut encoder);
        out.counters_by(
            "http_responses_by_cause",
            "Responses that the server made itself or aborted, by cause",
            "cause",
            &self.causes.occurred(),
        )?;
        let sources = &self.sources;
        if let Some(log) = &sources.log {
            let dropped = log.dropped();
            out.counter(
                "access_log_dropped",
                "Access log lines that were dropped",
                dropped,
            )?;
        }
        if let Some(files) = &sources.files {
            encode_files(&mut out, &files.stats())?;
        }
        if let Some(upstream) = &sources.upstream {
            encode_upstream(&mut out, upstream.stats())?;
        }
        if let Some(forward) = &sources.forward {
            encode_forward(&mut out, &forward.stats())?;
        }
        if let Some(sessions) = &sources.sessions {
            encode_sessions(&mut out, &sessions.stats())?;
        }
        if let Some(proxy) = &sources.session_proxy {
            encode_session_proxy(&mut out, &proxy.stats())?;
        }
        Ok(())
    }
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

fn encode_forward(out: &mut Out<'_, '_>, stats: &ForwardStats) -> std::fmt::Result {
    let kinds = [
        ("tcp", stats.tcp),
        ("udp", stats.udp),
        ("ip", stats.ip),
        ("http", stats.http),
    ];
    let of = |value: fn(&PassedStats) -> u64| kinds.map(|(name, stats)| (name, value(&stats)));
    let label = "protocol";
    let help = "Tunnels and requests of a forward proxy that are open, by protocol";
    out.gauges_by("forward_open", help, label, &of(|it| it.open))?;
    let help = "Tunnels and requests of a forward proxy that were opened, by protocol";
    out.counters_by("forward_opened", help, label, &of(|it| it.opened))?;
    let help = "Bytes to targets of a forward proxy; those of UDP and IP are counted at the end of a tunnel";
    out.counters_by(
        "forward_bytes_to_targets",
        help,
        label,
        &of(|it| it.to_targets),
    )?;
    let help = "Bytes from targets of a forward proxy; those of UDP and IP are counted at the end of a tunnel";
    out.counters_by(
        "forward_bytes_from_targets",
        help,
        label,
        &of(|it| it.from_targets),
    )?;
    let [to, from] = stats.dropped;
    out.counters_by(
        "forward_dropped",
        "UDP and IP packets that a forward proxy has dropped, by direction",
        "direction",
        &[("to_target", to), ("from_target", from)],
    )?;
    let statuses = stats.refused.iter();
    let statuses: Vec<_> = statuses
        .map(|(status, count)| (status.to_string(), *count))
        .collect();
    out.counters_by(
        "forward_refused",
        "Requests that a forward proxy has refused, by status",
        "status",
        &statuses,
    )
}

fn encode_sessions(out: &mut Out<'_, '_>, stats: &MonitorStats) -> std::fmt::Result {
    for (name, help, value) in [
        (
            "webtransport_sessions_open",
            "Open sessions of WebTransport",
            stats.open,
        ),
        (
            "webtransport_sessions_limit",
            "Largest number of sessions of WebTransport at the same time",
            stats.limit,
        ),
    ] {
        out.gauge(name, help, to_f64(value))?;
    }
    for (name, help, value) in [
        (
            "webtransport_streams",
            "Streams of both ends in sessions of WebTransport",
            stats.streams,
        ),
        (
            "webtransport_datagrams_dropped",
            "Received datagrams of sessions that were dropped because too many waited",
            stats.datagrams_dropped,
        ),
    ] {
        out.counter(name, help, value)?;
    }
    let opened: Vec<_> = stats
        .opened_by_dialect
        .iter()
        .map(|(dialect, count)| (dialect.name(), *count))
        .collect();
    out.counters_by(
        "webtransport_sessions",
        "Sessions of WebTransport that were opened, by dialect",
        "dialect",
        &opened,
    )?;
    let refused: Vec<_> = stats
        .refused
        .iter()
        .map(|(kind, count)| (kind.name(), *count))
        .collect();
    out.counters_by(
        "webtransport_sessions_refused",
        "Requests for sessions that were refused, by reason",
        "reason",
        &refused,
    )
}

fn encode_session_proxy(out: &mut Out<'_, '_>, stats: &SessionProxyStats) -> std::fmt::Result {
    out.gauge(
        "upstream_sessions_open",
        "Sessions that are forwarded to the upstream server, or being opened",
        to_f64(stats.open as u64),
    )?;
    for (name, help, value) in [
        (
            "upstream_sessions",
            "Sessions that were forwarded to the upstream server",
            stats.forwarded,
        ),
        (
            "upstream_sessions_refused",
            "Sessions that the upstream server has refused",
            stats.refused_upstream,
        ),
        (
            "upstream_sessions_failed",
            "Sessions that failed because the upstream server could not be reached or has none",
            stats.failed,
        ),
        (
            "upstream_datagrams_too_large",
            "Datagrams of sessions that were dropped because the next path carries smaller ones",
            stats.datagrams_too_large,
        ),
    ] {
        out.counter(name, help, value)?;
    }
    Ok(())
}

/// Encodes the metrics that are collected when they are read.
struct Out<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Out<'_, '_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> std::fmt::Result {
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

    /// Encodes a counter with one series for each value of a label.
    fn counters_by(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[(impl AsRef<str>, u64)],
    ) -> std::fmt::Result {
        let mut encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        for (of, value) in values {
            let label = [(label, of.as_ref())];
            ConstCounter::new(*value).encode(encoder.encode_family(&label)?)?;
        }
        Ok(())
    }

    /// Encodes a gauge with one series for each value of a label.
    fn gauges_by(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[(&str, u64)],
    ) -> std::fmt::Result {
        let mut encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (of, value) in values {
            let label = [(label, *of)];
            ConstGauge::new(to_f64(*value)).encode(encoder.encode_family(&label)?)?;
        }
        Ok(())
    }
}
