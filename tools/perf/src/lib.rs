//! Measures the throughput and the cost of QUIC, and of TLS over TCP as a baseline, with the perf protocol.
//!
//! A [`Server`] answers requests for bytes. A client runs a [`Scenario`] against it with [`measure`]: bytes
//! in one direction or both, requests with many in flight or one at a time, handshakes, closes. The
//! [`Outcome`] has the figures and the cost at both ends, since a server reports its counters on request. A
//! [`Report`] contains all of it in a form that is written as JSON.
//!
//! The protocol is that of quinn-perf, secnetperf and s2n-quic's perf: the first 8 bytes of a stream are the
//! length of the response that the client requests. One length that no client requests stands for a request
//! of the server's counters; other servers are measured without them. Another one begins a measurement of
//! datagrams, alone ([`Scenario::Datagram`]) or with other load ([`Scenario::Mixed`]), which needs a server
//! that supports the same version of it.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use courser::{Algorithm, QuicVersion};
//! use courser_measure::CpuClock;
//! use courser_measure::tls::{self, Trust};
//! use courser_perf::{Amount, Direction, Over, PROTOCOL, Plan, Remote, Scenario, Watch, measure};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let remote = Remote {
//!     target: "localhost:4433".to_owned(),
//!     address: "127.0.0.1:4433".parse()?,
//!     name: "localhost".to_owned(),
//!     over: Over::Quic,
//!     congestion: Algorithm::Cubic,
//!     capacity_rise: true,
//!     versions: vec![QuicVersion::V1],
//!     mtu: None,
//!     segmentation_offload: true,
//!     rebind_every: None,
//!     paths: Vec::new(),
//!     via: None,
//!     connect_timeout: Duration::from_secs(5),
//!     clock: CpuClock::Process,
//!     tls: Arc::new(tls::client(&Trust::AnyServer, PROTOCOL)?),
//!     sinks: None,
//! };
//! let plan = Plan {
//!     scenario: Scenario::Bulk {
//!         direction: Direction::Upload,
//!         connections: 1,
//!         streams: 1,
//!     },
//!     amount: Amount::Time(Duration::from_secs(10)),
//!     warm_up: Some(Duration::from_secs(1)),
//!     interval: None,
//! };
//! let watch = Watch {
//!     progress: &|_| {},
//!     interval: None,
//!     on_interval: &|_| {},
//!     is_stopped: &|| false,
//! };
//! let outcome = measure(&remote, &plan, watch).await?;
//! println!("{} bytes in {:.1} s", outcome.sent, outcome.seconds);
//! # Ok(())
//! # }
//! ```

mod arguments;
mod bench;
mod carrier;
mod comparison;
mod context;
mod csv;
mod datagram;
mod event;
mod link;
mod loopback;
mod measure;
mod meter;
mod network;
mod pairs;
mod plan;
mod quic;
mod remote;
mod report;
mod scenario_bulk;
mod scenario_close;
mod scenario_datagram;
mod scenario_handshake;
mod scenario_mixed;
mod scenario_rr;
mod server;
mod server_report;
mod server_side;
mod session;
mod side;
mod spread;
mod tcp;
pub mod text;
mod transfer;
mod via;
mod web_transport;
mod wire;

pub use courser_measure::{
    ConnectionCounters, Estimate, IoCounters, Latency, MovesReport, Percentiles,
};

pub use self::arguments::{PlanArguments, ScenarioName};
pub use self::bench::Outcome;
pub use self::comparison::{Both, Comparison, Handshakes};
pub use self::csv::Csv;
pub use self::datagram::{DatagramFlow, Datagrams};
pub use self::event::{Event, Moved};
pub use self::loopback::Loopback;
pub use self::measure::{measure, reachable};
pub use self::meter::{Amount, Interval, Watch};
pub use self::network::{Network, NetworkPath};
pub use self::pairs::{Figure, Pair, Pairs, PairsReport, Run};
pub use self::plan::{Direction, Mixed, Plan, Scenario};
pub use self::remote::{Over, Remote};
pub use self::report::{CpuUtilization, End, Report, Settings, Sum};
pub use self::server::{Server, ServerOptions};
pub use self::server_side::ServerGap;
pub use self::session::Handshake;
pub use self::side::Side;
pub use self::spread::Spread;
pub use self::transfer::Agreed;
pub use self::via::Via;
pub use self::wire::PROTOCOL;
