//! Spans and events of [`tracing`], and metrics, of QUIC connections and endpoints.
//!
//! - `TracingSinks` (feature `tracing`) opens a span for each connection, each path and each stream, with
//!   events in them.
//! - `Metrics` (feature `metrics`) counts connections by the cause of their end, drops by reason, the time that
//!   each limit held senders back, and the counters of endpoints and their shards. It is a service that answers
//!   with the text format of OpenMetrics.
//!
//! Both are made of [sinks](courser_telemetry::Sink). A program sets them as `sinks` of its configurations, and
//! combines them with each other or with traces in the format qlog by
//! [`Tee`](courser_telemetry::Tee).
//!
//! [`tracing`]: https://docs.rs/tracing

// Shows the feature that each item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "metrics", feature = "tracing"))]
mod names;

#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "tracing")]
mod spans;

#[cfg(feature = "metrics")]
pub use self::metrics::{Metrics, MetricsService, MetricsSinks};
#[cfg(feature = "tracing")]
pub use self::spans::TracingSinks;
