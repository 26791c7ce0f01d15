//! A load generator for HTTP/1.1, HTTP/2 and HTTP/3.
//!
//! A [`Plan`] contains the server, the requests, the number of connections and the end of the run. [`run`]
//! loads the server and returns a [`Summary`] of what was counted, which [`document`] writes as JSON.
//!
//! - **Closed loop**: without a rate, each stream sends its next request when the last one is answered.
//! - **Open loop**: with a [rate](Plan::rate), requests have times at which they are due. Latency can count
//!   from these times, so that a server which stops answering cannot hide the requests that were not sent
//!   meanwhile ([`Plan::is_corrected`]).
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
//!     tls: protocols.tls_config(&Trust::Anybody)?,
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
//! The generator uses little CPU time, so that it can measure efficient servers. Each thread has a runtime of
//! its own and its share of the connections. Threads share no lock but the counter of requests, and a
//! request takes no timer unless it has a time limit or a time at which it is due. Times at which requests
//! are due are kept to the microsecond. The summary contains the CPU time of the process, so that a limit of
//! the generator is not mistaken for a limit of the server.
//!
//! # Failures
//!
//! A connection that breaks is replaced, after pauses that grow, for half a minute. Requests that the server has
//! certainly not processed are retried. All other requests without a complete answer count as errors, by their label.
//! A run in which no connection can be made at all fails.

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
pub use self::request::{RequestParts, Requests, Spoken};
pub use self::run::{Progress, run};
pub use self::summary::{Handshakes, Summary};
pub use self::target::Target;
