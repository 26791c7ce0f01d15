//! noq as a peer of `courser interop matrix`: `interop-noq server|client`.

use std::process::ExitCode;
use std::time::Duration;

fn main() -> peers_common::interop::Result<ExitCode> {
    // The pacer lets 10 ms worth of the window go at once. With noq's default of 333 ms this is one
    // datagram, and most requests would wait for the handshake.
    peers_noq::interop_program::run(Some(Duration::from_millis(9)))
}
