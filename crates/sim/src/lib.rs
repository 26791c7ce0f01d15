//! A network in memory: hosts, links made of stacked effects, virtual time, one seed.
//!
//! A [`World`] holds machines and the links between them. A [`Host`](host::Host) is a machine that
//! runs a real endpoint, with a real handshake and real packets, and an [`App`](host::App) on it.
//! What happens follows from the seed alone, on every machine.
//!
//! ```
//! use std::net::SocketAddr;
//! use std::time::Duration;
//!
//! use courser_sim::World;
//! use courser_sim::apps::{Amount, Bulk, Serve, Way};
//! use courser_sim::host::{Host, HostSpec};
//!
//! let mut world = World::new(7);
//! let (here, there): (SocketAddr, SocketAddr) = ("10.1.0.1:5000".parse()?, "10.2.0.1:443".parse()?);
//!
//! let bulk = Bulk::new(there, Way::Up, Amount::Bytes(1_000_000));
//! let client = Host::new(HostSpec::client(here, world.seed_for("client")), bulk);
//! let server = Host::new(HostSpec::server(there, world.seed_for("server")), Serve::new());
//! let client = world.add("client", here.ip(), client);
//! let server = world.add("server", there.ip(), server);
//! world.connect(client, server, &"20mbit,40ms,1%,queue=64k".parse()?);
//!
//! let received = |world: &World| {
//!     let tally = world.node::<Host>(server).and_then(Host::tally);
//!     tally.map_or(0, |tally| tally.received)
//! };
//! let done = world.run_until(Duration::from_secs(60), |world| received(world) == 1_000_000)?;
//! assert!(done, "one megabyte in a minute, whatever is lost");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`scenario`] reads the same from files and [`run`](mod@run) measures it; `courser sim run` does
//! both.

pub mod apps;
pub mod host;
pub mod link;
pub mod node;
pub mod packet;
pub mod replay;
pub mod report;
pub mod run;
pub mod scenario;
pub mod seed;
pub mod trace;
pub mod world;

pub use crate::world::World;
