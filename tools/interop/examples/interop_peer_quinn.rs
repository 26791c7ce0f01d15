//! quinn as a peer of `courser interop matrix`: `interop_peer_quinn server|client`.
//!
//! Its sources are in the workspace `peers`, which compiles them against noq. They are compiled here because the other
//! stacks of that workspace take minutes to build.

#[path = "../../../peers/common/src/interop.rs"]
mod interop;
#[path = "../../../peers/quinn/src/interop_program.rs"]
mod interop_program;
#[path = "../../../peers/common/src/interop_tls.rs"]
mod interop_tls;

use std::process::ExitCode;

use quinn as api;

fn main() -> interop::Result<ExitCode> {
    interop_program::run(None)
}
