//! A network in memory: hosts, links made of stacked effects, virtual time, one seed.
//!
//! A [`World`] holds machines and the links between them. A [`Host`](host::Host) is a machine that
//! runs a real endpoint, with a real handshake and real packets, and an [`App`](host::App) on it.
//! All events follow from the seed, on any computer. The links are those of [`courser_link`].
//!
//! ```
//! use std::net::SocketAddr;
//! use std::time::Duration;
//!
//! use courser_sim::World;
//! use courser_sim::apps::{Amount, Bulk, Serve, TransferDirection};
//! use courser_sim::host::{Host, HostSpec};
//!
//! let mut world = World::new(7);
//! let (here, there): (SocketAddr, SocketAddr) = ("10.1.0.1:5000".parse()?, "10.2.0.1:443".parse()?);
//!
//! let bulk = Bulk::new(there, TransferDirection::Up, Amount::Bytes(1_000_000));
//! let client = Host::new(HostSpec::client(here, world.seed_for("client")), bulk);
//! let server = Host::new(HostSpec::server(there, world.seed_for("server")), Serve::new());
//! let client = world.add("client", here.ip(), client);
//! let server = world.add("server", there.ip(), server);
//! world.connect(client, server, &"20mbit,40ms,1%,queue=64k".parse()?);
//!
//! let received = |world: &World| {
//!     let counters = world.node::<Host>(server).and_then(Host::counters);
//!     counters.map_or(0, |counters| counters.received)
//! };
//! let done = world.run_until(Duration::from_secs(60), |world| received(world) == 1_000_000)?;
//! assert!(done, "one megabyte arrives within a minute");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`scenario`] reads such worlds from files and [`run`](mod@run) measures them. `courser sim run`
//! does both.
//!
//! # Testing a protocol
//!
//! A [`Machine`](machine::Machine) runs async code written for `courser` without changes: its
//! endpoints bind virtual sockets, and [`courser::runtime`] has virtual time.
//!
//! ```
//! use courser::{ClientConfig, Endpoint, ServerConfig, runtime};
//! use courser_sim::{World, identity::identity};
//! use std::time::Duration;
//!
//! type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
//!
//! async fn server() -> Result {
//!     let config = ServerConfig::with_identity(&identity())?.alpn(["greeting"]);
//!     let endpoint = Endpoint::server(config, "10.0.0.2:4433".parse()?)?;
//!     let connection = endpoint.accept().await.ok_or("closed")?.await?;
//!     let (mut send, mut receive) = connection.accept_bi().await?;
//!     let name = receive.read_to_end(100).await?;
//!     runtime::sleep(Duration::from_millis(5)).await;
//!     send.write_all(&[b"hello, ", &name[..]].concat()).await?;
//!     send.finish()?;
//!     connection.closed().await;
//!     Ok(())
//! }
//!
//! async fn client() -> Result<(Vec<u8>, Duration)> {
//!     let begin = runtime::now();
//!     let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["greeting"]);
//!     let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
//!     let connecting = endpoint.connect_with(config, "10.0.0.2:4433".parse()?, "localhost")?;
//!     let (mut send, mut receive) = connecting.await?.open_bi().await?;
//!     send.write_all(b"world").await?;
//!     send.finish()?;
//!     Ok((receive.read_to_end(100).await?, runtime::now() - begin))
//! }
//!
//! # fn main() -> Result {
//! let mut world = World::new(42);
//! let near = world.machine("client", [10, 0, 0, 1]);
//! let far = world.machine("server", [10, 0, 0, 2]);
//! world.join_machines(&near, &far, &"50ms".parse()?);
//! far.spawn(server());
//! let (answer, time) = world.run_until_done(near.spawn(client()))??;
//! assert_eq!(answer, b"hello, world");
//! // One round trip to connect, one for the request, and the sleep of the server.
//! assert_eq!(time, Duration::from_millis(205));
//! # Ok(()) }
//! ```
//!
//! `examples/sim_my_protocol.rs` does the same with loss and a hundred seeds. Create configurations
//! for each run, because TLS sessions and tokens of a previous run would change the next one.

pub mod apps;
pub mod host;
pub mod identity;
pub mod link;
pub mod machine;
pub mod nat;
pub mod node;
pub mod packet;
pub mod replay;
pub mod report;
pub mod run;
pub mod scenario;
pub mod trace;
pub mod world;

pub use courser_link::seed;

pub use crate::world::World;
