//! Metrics of connections and endpoints.

mod counts;
mod endpoint;
#[cfg(feature = "metrics-facade")]
mod facade;
mod family;
mod histogram;
mod http;
mod open_metrics;
mod path;
mod service;
mod sink;
mod source;
mod value_counters;

use std::sync::{Arc, Weak};

use courser_quic::Endpoint;
use prometheus_client::collector::Collector;

pub use self::family::{Family, Value};
pub use self::http::{CLIENT_CLOSED, EndedRequest, HttpCounts, HttpVersion, method_index};
pub use self::service::MetricsService;
pub use self::sink::MetricsSinks;
pub use self::source::Report;
use self::source::Source;

/// Counts events of connections, and reports them with the counters of endpoints.
///
/// Set [`Metrics::sinks`] in the configurations of clients and servers, and add endpoints with
/// [`Metrics::watch`]. [`Metrics::service`] responds to requests of Prometheus in any server for `tower`
/// services. Clones share the counters.
///
/// | metric | labels | |
/// |---|---|---|
/// | `courser_connections_started_total`, `_established_total`, `courser_connections_active` | `side` | |
/// | `courser_connections_closed_total` | `side`, `by`, `cause` | the error code, or `idle timeout` and the like |
/// | `courser_handshake_duration_seconds` | `side` | histogram |
/// | `courser_smoothed_rtt_seconds` | `family` | histogram, observed when connections end |
/// | `courser_datagram_size_bytes` | | histogram, observed when connections end |
/// | `courser_send_limited_seconds_total` | `by`, `family` | time for which a limit held a sender back |
/// | `courser_packets_lost_total` | `trigger`, `family` | |
/// | `courser_packets_dropped_total`, `courser_timers_expired_total` | `reason`, `timer` | |
/// | `courser_packets_spuriously_lost_total` | | |
/// | `courser_paths_total`, `courser_ecn_total`, `courser_congestion_states_total` | `event`, `state`, `state` | |
/// | `courser_endpoint_…` | `endpoint`, `shard` | counters of [`EndpointStats`](courser_quic::EndpointStats), refusals by `reason` |
/// | `courser_socket_…` | `endpoint` | datagrams, bytes and system calls, receive buffers and what the kernel dropped |
/// | `courser_http_…`, `courser_connections_…` and more | | the metrics of a server for HTTP, see `Server::metrics` of `courser-server` |
///
/// `family` is `ipv4` or `ipv6`, that of the active path. With [`Metrics::sinks_named`] these metrics also have
/// the label `endpoint`.
///
/// No label has a value that a peer can choose freely: the first 64 error codes without a name are counted
/// separately, and others as `other`.
///
/// ```
/// use courser_observe::Metrics;
/// # use courser_quic::{Endpoint, Identity, ServerConfig};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let identity = Identity::dev()?;
/// let metrics = Metrics::new();
/// let config = ServerConfig::with_identity(&identity)?
///     .alpn(["greeting"])
///     .sinks(metrics.sinks());
/// let endpoint = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
/// metrics.watch("public", &endpoint);
///
/// let text = metrics.text();
/// assert!(text.contains(r#"courser_endpoint_connections{endpoint="public",shard="0"} 0"#));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Metrics(Source);

impl Metrics {
    /// Creates metrics with all counters at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a factory of sinks that count the events of connections.
    ///
    /// A sink costs an atomic addition for each event, and a comparison for each batch of datagrams. It computes
    /// nothing for single packets.
    pub fn sinks(&self) -> Arc<MetricsSinks> {
        Arc::new(MetricsSinks::new(self.0.counts(None)))
    }

    /// Returns a factory like [`Metrics::sinks`] for the connections of one endpoint. Their metrics have `name`
    /// as the label `endpoint`: the name passed to [`Metrics::watch`], or that of a tenant.
    ///
    /// Sinks with the same name share counters. The first 64 names are counted separately; connections with
    /// further names are counted together as `other`. The counters of a name exist as long as `self`.
    ///
    /// ```
    /// use courser_observe::Metrics;
    /// # use courser_quic::{Identity, ServerConfig};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let metrics = Metrics::new();
    /// # let identity = Identity::dev()?;
    /// for name in ["public", "internal"] {
    ///     let config = ServerConfig::with_identity(&identity)?.sinks(metrics.sinks_named(name));
    ///     // ...
    ///     # drop(config);
    /// }
    /// let text = metrics.text();
    /// assert!(text.contains(r#"courser_connections_active{endpoint="public",side="server"} 0"#));
    /// # Ok(())
    /// # }
    /// ```
    pub fn sinks_named(&self, endpoint: &str) -> Arc<MetricsSinks> {
        Arc::new(MetricsSinks::new(self.0.counts(Some(endpoint))))
    }

    /// Reports the counters of an endpoint with `name` as the label `endpoint`. Replaces an endpoint with this
    /// name.
    ///
    /// The metrics hold a handle of the endpoint, so that it accepts clients until [`Metrics::unwatch`] or
    /// [`Endpoint::close`](courser_quic::Endpoint::close), even if the program drops its own.
    pub fn watch(&self, name: impl Into<String>, endpoint: &Endpoint) {
        self.0.watch(name.into(), endpoint);
    }

    /// Stops reporting the endpoint with this name. Returns false if there is none.
    pub fn unwatch(&self, name: &str) -> bool {
        self.0.unwatch(name)
    }

    /// Returns all metrics in the text format of OpenMetrics 1.0.
    ///
    /// Costs a system call for each socket of a watched endpoint.
    pub fn text(&self) -> String {
        open_metrics::text(self.collector())
    }

    /// Returns a collector for a registry of the crate [`prometheus-client`](https://docs.rs/prometheus-client),
    /// for programs that report their own metrics with it. The registry adds its prefix, which should be
    /// `courser`.
    pub fn collector(&self) -> Box<dyn Collector> {
        Box::new(open_metrics::Live(self.0.clone()))
    }

    /// Returns a service that responds to each request with [`Metrics::text`].
    pub fn service(&self) -> MetricsService {
        MetricsService::new(self.0.clone())
    }

    /// Sets all metrics in the recorder of the crate [`metrics`](https://docs.rs/metrics).
    ///
    /// Call it regularly, for example every ten seconds. Sums of seconds are reported as gauges, because
    /// counters of that crate are integers; a histogram is reported as its `_sum` and `_count`.
    #[cfg(feature = "metrics-facade")]
    pub fn publish(&self) {
        facade::publish(self.0.families());
    }
}

/// Returns the counters of requests of these metrics.
pub fn http_counts(metrics: &Metrics) -> Arc<HttpCounts> {
    metrics.0.http()
}

/// Adds a server to these metrics. Its values are reported as long as it exists.
pub fn add_server(metrics: &Metrics, server: Weak<dyn Report>) {
    metrics.0.add_server(server);
}

/// Keeps the counters of a server that is going away.
pub fn keep_counters(metrics: &Metrics, families: Vec<Family>) {
    metrics.0.keep_counters(families);
}
