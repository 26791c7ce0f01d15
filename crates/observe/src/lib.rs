//! [`tracing`] spans and events, and metrics, of QUIC connections and endpoints.
//!
//! - `TracingSinks` (feature `tracing`) opens a span for each connection, each path and each stream, and emits
//!   events in them.
//! - `Metrics` (feature `metrics`) counts connections by close cause, dropped packets by reason, the time for
//!   which each limit held senders back, and the counters of endpoints and their shards. Its service responds in
//!   the text format of OpenMetrics.
//!
//! Both consist of [sinks](courser_telemetry::Sink). A program sets them as `sinks` of its configurations, and
//! combines them with each other or with qlog traces in a [`Tee`](courser_telemetry::Tee).
//!
//! [`tracing`]: https://docs.rs/tracing

// Displays the feature that each item requires.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "metrics", feature = "tracing"))]
mod names;

#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "tracing")]
mod spans;

#[cfg(feature = "metrics")]
pub use self::metrics::{Metrics, MetricsService, MetricsSinks};
/// The inside of [`Metrics`] for `courser-server`, which reports its own. Not part of the public API.
#[cfg(feature = "metrics")]
#[doc(hidden)]
pub mod hooks {
    pub use crate::metrics::{
        CLIENT_CLOSED, EndedRequest, Family, HttpCounts, HttpVersion, Report, Value, add_server,
        http_counts, keep_counters, method_index,
    };
}
#[cfg(feature = "tracing")]
pub use self::spans::TracingSinks;
