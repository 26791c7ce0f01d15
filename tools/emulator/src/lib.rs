//! Emulates a network link between UDP programs in real time.
//!
//! An [`Emulator`] stands between clients and a server. Each datagram that arrives enters a
//! [`Link`](courser_link::Link) with the time of its arrival, and leaves at the time that the link sets:
//! delayed, queued, marked, damaged, or not at all. The effects and their grammar
//! ([`LinkSpec`](courser_link::LinkSpec)) are the same as in simulations.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use courser_emulator::{Emulator, Plan};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut emulator = Emulator::bind(Plan {
//!     listen: "127.0.0.1:4434".parse()?,
//!     server: "127.0.0.1:4433".parse()?,
//!     link: "20mbit,40ms,1%,queue=64k".parse()?,
//!     seed: 1,
//!     max_clients: 256,
//!     idle: Duration::from_secs(60),
//!     amplification_bytes: 2400,
//!     hold: 512 << 20,
//! })?;
//! emulator.run(|status| status.elapsed() < Duration::from_secs(10))?;
//! println!("{:?}", emulator.report());
//! # Ok(())
//! # }
//! ```
//!
//! An [`Observer`] receives all datagrams of an emulator, for programs that analyse them.
//!
//! # How it works
//!
//! One socket faces the clients, and each client has its own socket towards the server. The thread that
//! calls [`Emulator::run`] reads and writes all of them. It sleeps until shortly before the next datagram
//! is due, and spins for the rest. Datagrams that are due together are sent in one system call if the
//! system supports segmentation offload (GSO).
//!
//! A NAT in the link changes the clients' ports or addresses towards the server. Links with an MTU can
//! report packets that are too large with ICMP Packet Too Big, which needs the right to send ICMP.
//!
//! The [`Report`] counts the effects of the link, the lateness of datagrams and the CPU time, so that a
//! limit of the emulator is not mistaken for one of the programs.

mod batch;
mod clients;
mod emulator;
mod icmp;
mod observer;
mod relay;
mod report;
mod slabs;
mod text;
mod wait;

pub use self::emulator::{Emulator, Error, Plan, Status};
pub use self::observer::{ObservationPoint, ObservedDatagram, Observer};
pub use self::report::{Amplification, Delays, Direction, Report};
