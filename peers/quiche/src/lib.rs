//! HTTP/3 on quiche: a server and a client on one thread, each around poll(2), for the peer program
//! and for the witness in `interop/http3/quiche`.
//!
//! quiche has no sockets. What stands between it and the kernel is set up for speed: datagrams come
//! and go in batches (GRO and GSO), all that was read is processed before anything is sent, and
//! bodies that are sent are not copied before quiche puts them into packets.

#[path = "../../common/src/command_line.rs"]
pub mod command_line;
#[path = "../../common/src/latency.rs"]
pub mod latency;
#[path = "../../common/src/process.rs"]
pub mod process;
#[path = "../../common/src/settings.rs"]
pub mod settings;
#[path = "../../common/src/sockets.rs"]
pub mod sockets;
#[path = "../../common/src/tally.rs"]
pub mod tally;

pub mod body;
pub mod client;
pub mod server;
pub mod setup;

mod event_loop;
#[path = "../../common/src/result_line.rs"]
mod result_line;
mod socket;
mod streams;

pub use result_line::{ClientResult, Datagrams, PathCounts, Ready, ServerResult, print, version_in};

/// Any error of a program; it is printed and ends the program.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The version of quiche.
pub fn version() -> String {
    version_in(include_str!("../Cargo.lock"), "quiche")
}
