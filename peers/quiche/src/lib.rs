//! quiche: a server and a client on one thread, each around poll(2), with HTTP/3 on both, for the peer
//! program, for the end in `courser interop matrix`, and for the witness in `interop/http3/quiche`.
//!
//! quiche has no sockets. What stands between it and the kernel is set up for speed: datagrams come
//! and go in batches (GRO and GSO), all that was read is processed before anything is sent, and
//! bodies that are sent are not copied before quiche puts them into packets.

pub mod body;
pub mod client;
pub mod dialed;
pub mod http3;
pub mod server;
pub mod setup;

mod event_loop;
mod ids;
mod socket;

use peers_common::version_in;

/// The version of quiche.
pub fn version() -> String {
    version_in(include_str!("../Cargo.lock"), "quiche")
}
