//! A load generator for HTTP/1.1, HTTP/2 and HTTP/3.
//!
//! A [`Plan`] contains the server, the requests, the number of connections and the limit of the run. [`run`]
//! loads the server and returns a [`Summary`], which [`document`] converts to JSON.
//!
//! - **Closed loop**: without a rate, each stream sends its next request after the response to the last one.
//! - **Open loop**: with a [rate](Plan::rate), each request is due at a time. Latency can count from these
//!   times, so that it includes the delay of requests that wait while the server does not answer
//!   ([`Plan::is_corrected`]).
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use courser_load::{Amount, Plan, Protocols, RequestParts, Requests, Resume, Target, run};
//! use courser_measure::tls::Trust;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let urls: [http::Uri; 1] = ["https://localhost:4433/".parse()?];
//! let protocols = Protocols::Quic;
//! let plan = Plan {
//!     target: Target::of(&urls, None)?,
//!     requests: Requests::new(&urls, RequestParts::default(), None)?,
//!     tls: protocols.tls_config(&Trust::AnyServer)?,
//!     protocols,
//!     amount: Amount::Requests(10_000),
//!     connections: 4,
//!     threads: 1,
//!     closes: false,
//!     resume: Resume::Never,
//!     streams: 25,
//!     rate: None,
//!     is_corrected: false,
//!     connection_rate: None,
//!     timeout: None,
//!     connect_timeout: Duration::from_secs(10),
//!     inactivity_timeout: Duration::from_secs(30),
//!     stream_window: None,
//!     connection_window: None,
//!     versions: vec![courser::QuicVersion::V1],
//!     mtu: None,
//!     segmentation_offload: true,
//!     sinks: None,
//!     rebind_every: None,
//!     log_file: None,
//! };
//! let (_keep, stop) = tokio::sync::watch::channel(false);
//! let summary = run(&Arc::new(plan), &stop, |_| {})?;
//! println!("{:.0} requests per second", summary.per_second());
//! # Ok(())
//! # }
//! ```
//!
//! # Cost
//!
//! The generator uses little CPU time, so that it can measure efficient servers. Each thread has its own
//! runtime and its share of the connections. Threads share only the counter of requests, and a request uses no
//! timer unless it has a time limit or a due time. Due times have a precision of a microsecond. The summary
//! contains the CPU time of the process, so that a limit of the generator is not mistaken for a limit of the
//! server.
//!
//! # Failures
//!
//! A lost connection is replaced. Attempts continue for half a minute, with growing pauses. Requests that the
//! server has certainly not processed are retried. All other requests without a complete response count as
//! errors, by label. A run fails if no connection can be opened at all.

mod alarm;
mod connect;
mod connection;
mod counts;
mod json;
mod label;
mod metered;
mod pattern;
mod plan;
mod request;
mod request_stream;
mod run;
mod schedule;
mod sender;
mod sessions;
mod summary;
mod target;
pub mod text;
mod worker;

pub use self::counts::{Agreed, AgreedTls, ConnectionRecord, QuicRecord};
pub use self::json::{PERCENTILES, document};
pub use self::pattern::Pattern;
pub use self::plan::{Amount, Plan, Protocols, Resume};
pub use self::request::{HttpVersion, RequestParts, Requests};
pub use self::run::{Progress, run};
pub use self::summary::{Handshakes, Summary};
pub use self::target::Target;
