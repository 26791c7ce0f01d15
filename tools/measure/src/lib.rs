//! The common parts of courser's measuring tools.
//!
//! - [`CpuClock`] counts the CPU time of a thread or a process, and [`pin_to`] keeps a thread on one
//!   core, so that it is not moved while it is measured.
//! - [`tls`] makes configurations that are the same for QUIC and for TLS over TCP, so that the two can be
//!   compared.
//! - `certificate` reads names, dates and issuers of certificates.
//! - [`choices`] and [`ech`] read values of flags for TLS.
//! - [`target`] finds a server, and [`Peer`] describes what went wrong when a connection to it fails.
//! - [`sockets`] reports what makes the UDP sockets of this machine slow.
//! - [`Moves`] counts moves of connections between sockets and the stalls that they cause, and [`Mover`]
//!   makes such moves. [`Latency`] is a distribution of times.
//! - [`Records`] keeps traces and key logs, and [`Watch`] warns while a program runs.
//! - [`memory_of`], [`cpu_time_of`], [`kernel_drops_at`] and [`MetricsPage`] measure another process.
//! - [`Failure`] is the reason why a tool ends without success: one line for humans, and a [`Cause`]
//!   for the program that knows which flag helps. [`printable`] makes text of a peer harmless.

pub use courser::server::certificate;
pub mod choices;
mod cpu;
pub mod ech;
mod failure;
mod latency;
mod moves;
mod peer;
mod processes;
mod records;
pub mod sockets;
pub mod target;
pub mod tls;
mod watch;

pub use self::cpu::{CpuClock, allowed_cores, pin_to};
pub use self::failure::{Cause, Failure, printable};
pub use self::latency::{Latency, histogram_of_times};
pub use self::moves::{Busy, Mover, Moves, MovesReport, MovesTotal, Way};
pub use self::peer::Peer;
pub use self::processes::{MetricsPage, ProcessMemory, cpu_time_of, kernel_drops_at, memory_of};
pub use self::records::Records;
pub use self::watch::Watch;
