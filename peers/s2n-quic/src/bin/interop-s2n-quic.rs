//! s2n-quic as a peer of `courser interop matrix`: `interop-s2n-quic server|client`.

use std::process::ExitCode;

fn main() -> peers_common::interop::Result<ExitCode> {
    peers_s2n_quic::interop_program::run()
}
