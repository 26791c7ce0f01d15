//! The common parts of courser's tools.
//!
//! For measurements:
//!
//! - [`CpuClock`] measures the CPU time of a thread or a process, and [`pin_to`] keeps a thread on one core during a
//!   measurement.
//! - [`Times`] collects times, and returns their distribution as [`Latency`] or as [`Stats`]. [`Percentiles`] and
//!   [`Estimate`] describe other numbers.
//! - [`IoCounters`] and [`ConnectionCounters`] count the work of sockets and of QUIC connections.
//! - [`Mover`] moves connections to other sockets, and [`Moves`] counts these moves and the stalls that they cause.
//! - [`memory_of`], [`cpu_time_of`], [`kernel_drops_at`] and [`MetricsPage`] measure another process.
//!
//! For connections:
//!
//! - [`target`] finds a server, and [`Peer`] describes the failure of a connection to it.
//! - [`tls`] creates configurations that are the same for QUIC and for TLS over TCP, so that the two can be compared.
//!   [`choices`] and [`ech`] read the values of TLS flags.
//! - [`sockets`] reports the reasons why the UDP sockets of this machine are slow.
//! - [`Records`] keeps traces and key logs, and [`Watch`] warns while a program runs.
//!
//! [`Failure`] is the reason why a tool fails, in one line, with a [`Cause`] for the program that has flags.
//! [`printable`] replaces control characters in text of a peer.

pub use courser::server::certificate;
pub mod choices;
mod counters;
mod cpu;
pub mod ech;
mod failure;
mod moves;
mod peer;
mod processes;
mod records;
pub mod sockets;
mod statistics;
pub mod target;
mod times;
pub mod tls;
mod watch;

pub use self::counters::{ConnectionCounters, IoCounters};
pub use self::cpu::{CpuClock, allowed_cores, pin_to};
pub use self::failure::{Cause, Failure, printable};
pub use self::moves::{Direction, ExchangeGuard, Mover, Moves, MovesReport, MovesTotal};
pub use self::peer::Peer;
pub use self::processes::{MetricsPage, ProcessMemory, cpu_time_of, kernel_drops_at, memory_of};
pub use self::records::Records;
pub use self::statistics::{Estimate, Percentiles, Stats, median};
pub use self::times::{Latency, Times};
pub use self::watch::Watch;
