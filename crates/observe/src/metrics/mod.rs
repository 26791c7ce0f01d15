//! Metrics of connections and endpoints.

mod counts;
mod endpoint;
#[cfg(feature = "metrics-facade")]
mod facade;
mod family;
mod histogram;
mod open_metrics;
mod path;
mod service;
mod sink;
mod source;
mod value_counters;

use std::sync::Arc;

use courser_quic::Endpoint;
use prometheus_client::collector::Collector;

pub use self::service::MetricsService;
pub use self::sink::MetricsSinks;
use self::source::Source;

/// Counts what happens on connections, and reports it together with the counters of endpoints.
///
/// [`Metrics::sinks`] goes into the configurations of clients and servers, and [`Metrics::watch`] adds an
/// endpoint. [`Metrics::service`] answers requests of Prometheus, in any server that takes services of `tower`.
/// All clones have the same counters.
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
///
/// `family` is `ipv4` or `ipv6`, that of the path in use. With [`Metrics::sinks_named`] all of them have the label
/// `endpoint` too.
///
/// No label has a value that a peer can choose freely: of error codes without a name the first 64 count apart, and
/// others as `other`.
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

    /// Returns a factory of sinks that count what happens on the connections of a configuration.
    ///
    /// A sink costs an atomic addition for each event, and a comparison for each batch of datagrams. It computes
    /// nothing for single packets.
    pub fn sinks(&self) -> Arc<MetricsSinks> {
        Arc::new(MetricsSinks::new(self.0.counts(None)))
    }

    /// Returns a factory like [`Metrics::sinks`] for the connections of one endpoint. Their metrics have `name` as
    /// the label `endpoint`: the name passed to [`Metrics::watch`], or that of a tenant.
    ///
    /// Sinks with the same name share counters. The first 64 names have counters of their own; connections with
    /// further names are counted together as `other`. The counters of a name last as long as `self`.
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

    /// Reports the counters of an endpoint, with `name` as the label `endpoint`. Replaces an endpoint of that name.
    ///
    /// The metrics hold a handle of the endpoint, so that it accepts clients until [`Metrics::unwatch`] or
    /// [`Endpoint::close`](courser_quic::Endpoint::close) even if the program drops its own.
    pub fn watch(&self, name: impl Into<String>, endpoint: &Endpoint) {
        self.0.watch(name.into(), endpoint);
    }

    /// Stops reporting the endpoint of this name. Returns false if there is none.
    pub fn unwatch(&self, name: &str) -> bool {
        self.0.unwatch(name)
    }

    /// Returns all metrics in the text format of OpenMetrics 1.0.
    ///
    /// It costs a system call for each socket of a watched endpoint.
    pub fn text(&self) -> String {
        open_metrics::text(self.collector())
    }

    /// Returns a collector for a registry of the crate
    /// [`prometheus-client`](https://docs.rs/prometheus-client), for programs that report metrics of their own with
    /// it. The registry adds its prefix, which should be `courser`.
    pub fn collector(&self) -> Box<dyn Collector> {
        Box::new(open_metrics::Live(self.0.clone()))
    }

    /// Returns a service that answers each request with [`Metrics::text`].
    pub fn service(&self) -> MetricsService {
        MetricsService::new(self.0.clone())
    }

    /// Sets all metrics in the recorder of the crate [`metrics`](https://docs.rs/metrics).
    ///
    /// Call it when values are wanted, for example every ten seconds. Sums of seconds, which counters of that
    /// crate cannot hold, are gauges; a histogram is reported as its `_sum` and its `_count`.
    #[cfg(feature = "metrics-facade")]
    pub fn publish(&self) {
        facade::publish(self.0.families());
    }
}
