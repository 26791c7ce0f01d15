//! Every attack against a real endpoint, in virtual time, and some over real sockets.

mod client;
#[path = "../../../courser/tests/memory/counting.rs"]
#[expect(dead_code, reason = "allocations are not counted here")]
mod counting;
mod harness;
mod http;
mod odd;
mod sockets;
mod transport;
