//! A network in memory: hosts, links made of stacked effects, virtual time, one seed.
//!
//! A [`World`] joins machines by [links](link) that delay, lose, reorder and mark packets, and
//! lets virtual time pass. Nothing waits for a real clock, and everything follows from the seed:
//! what fails once fails again.
//!
//! There are two kinds of machine. A [`Host`](host::Host) runs courser's endpoint without any
//! async, for measurements. A [`Machine`](machine::Machine) runs async code that is written
//! against `courser`, unchanged: endpoints bind virtual sockets there, and
//! [`courser::runtime`] has virtual time.
//!
//! # A protocol of one's own under test
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
//! // One round trip to connect and one to ask, and what the server slept.
//! assert_eq!(time, Duration::from_millis(205));
//! # Ok(()) }
//! ```
//!
//! `examples/sim_my_protocol.rs` does the same with loss and a hundred seeds. Make configurations
//! anew for each run: TLS sessions and tokens that they remember from the run before change the
//! next one.

pub mod apps;
pub mod host;
pub mod identity;
pub mod link;
pub mod machine;
pub mod node;
pub mod packet;
pub mod report;
pub mod run;
pub mod scenario;
pub mod seed;
pub mod trace;
pub mod world;

pub use crate::world::World;
