//! The settings of how a server ends, and whom it tells what happens.

use std::time::Duration;

use super::Server;
use crate::events::{Event, Events};

impl Server {
    /// Drains the server when `signal` completes, for example [`shutdown_signal`](crate::shutdown_signal).
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?)
    ///     .drain(courser::server::shutdown_signal())
    ///     .deadline(Duration::from_secs(20));
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn drain(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.drain.signal = Some(Box::pin(signal));
        self
    }

    /// Sets how long a draining server continues as before but reports that it is not ready, so that load
    /// balancers can react. None by default.
    pub fn ready_delay(mut self, delay: Duration) -> Self {
        self.drain.ready_delay = delay;
        self
    }

    /// Sets the time limit for requests in flight after the server has stopped accepting requests. Default 30 s.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.drain.deadline = deadline;
        self
    }

    /// Calls `listener` for each [event](Event). It should return quickly.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?)
    ///     .on_event(|event| eprintln!("{event:?}"));
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn on_event(mut self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.events = Events::to(listener);
        self
    }

    /// Reports this server in `metrics`: its requests by protocol, method and status with their durations, its
    /// connections over TCP and QUIC, refused clients by reason, its memory, certificates and drain.
    ///
    /// QUIC connections are counted by the sinks of `metrics` too, with the address that they arrived at as the label
    /// `endpoint`, beside the sinks of [`Server::sinks`]. There is nothing to [watch](courser_observe::Metrics::watch).
    ///
    /// | metric | labels | |
    /// |---|---|---|
    /// | `courser_http_requests_total` | `protocol`, `method`, `code` | other methods than those of RFC 9110 and PATCH are `other`; the code 499 stands for clients that have left before there was a response |
    /// | `courser_http_request_duration_seconds` | `protocol` | histogram, from the request header section to the end of the response |
    /// | `courser_http_response_content_bytes_total`, `courser_http_responses_incomplete_total` | `protocol` | |
    /// | `courser_http_requests_refused_total` | `cause` | requests that the service did not get |
    /// | `courser_handler_panics_total` | | panics of the service |
    /// | `courser_requests_in_flight`, `courser_connections_open`, `courser_connections_total` | `protocol` | |
    /// | `courser_refused_total` | `reason` | refused clients over QUIC and TCP |
    /// | `courser_ready`, `courser_busy`, `courser_draining`, `courser_drain_…` | | the state of the server |
    /// | `courser_tcp_…`, `courser_udp_…`, `courser_quic_…` | | bytes, handshakes, packets, memory; shards by `address` and `shard` |
    /// | `courser_certificate_…`, `courser_acme_…` | | |
    ///
    /// No label has a value that a client can choose freely. Values of several servers with the same metrics are
    /// added. A request costs two readings of the clock and five atomic additions.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_observe as observe; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::observe::Metrics;
    ///
    /// let metrics = Metrics::new();
    /// let app: axum::Router = axum::Router::new().route_service("/metrics", metrics.service());
    /// let server = courser::serve("127.0.0.1:0", courser::Identity::dev()?)
    ///     .metrics(&metrics)
    ///     .bind()?;
    /// assert!(metrics.text().contains("courser_ready 1"));
    /// # drop(server.service(app));
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self, metrics: &courser_observe::Metrics) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }
}
