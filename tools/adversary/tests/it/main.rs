//! Tests of all attacks against real endpoints in virtual time, and of some over real sockets.

mod client;
#[path = "../../../../crates/courser/tests/memory/counting.rs"]
#[expect(dead_code, reason = "allocations are not counted here")]
mod counting;
mod early_data;
mod harness;
mod http;
mod odd;
mod proxies;
mod sessions;
mod sockets;
mod transport;
