//! A hostile endpoint. It completes real handshakes and sends packets that no honest peer sends.
//!
//! - [`Connection`] completes a handshake and seals any frames it is given. Its [`Hooks`] insert,
//!   drop, replace and reorder frames and packets before encryption. They also falsify
//!   acknowledgments, transport parameters and connection IDs.
//! - [`Attacker`] holds many connections on many ports, as client or as server.
//! - An [`Attack`] drives an attacker at its own pace. [`attacks::ALL`] lists every attack with
//!   the labels that it covers.
//! - [`odd`] contains honest peers with every unusual behaviour that the RFCs permit.
//! - [`AttackNode`] runs an attack in a world of the simulator, [`Sockets`] over UDP.
//!
//! The crate is for tests and for `courser-robustness`, which `cargo xtask attack` runs. No released crate depends on it.

pub mod attacks;
pub mod http;
pub mod odd;
pub mod sessions;

mod attack;
mod attacker;
mod connection;
mod encode;
mod expect;
mod hooks;
mod node;
mod socket;
mod status;
mod tls;

pub use attack::{Attack, Pace, Plan, Victim};
pub use attacker::{Attacker, Counts, Datagram, Goals};
pub use connection::{Close, Connection, DATAGRAM, Seen, ack};
pub use encode::{encode, put_varint};
pub use expect::Expect;
pub use hooks::{Fate, Honest, Hooks, ID_LEN, PacketToSend, Verdict};
pub use node::AttackNode;
pub use socket::Sockets;
pub use tls::{client_tls, early_client_tls, forgetful_server_tls, server_tls};
