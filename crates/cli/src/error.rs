//! Failures as users see them: one line that names the flags that help.

use std::io;

use courser_measure::Cause;

pub(crate) use courser_measure::Failure;

use crate::handshake::{self, Tool};

/// Adds the flags of a command that help to a failure.
pub(crate) fn explain(failure: Failure, tool: Tool) -> Failure {
    let explained = match (failure.cause(), tool) {
        (Some(Cause::Handshake(cause)), _) => handshake::explain(cause, tool),
        (Some(Cause::Protocol), _) => format!("{failure}: {}", handshake::protocol_remedy(tool)),
        (Some(Cause::Refused), Tool::Perf) => format!("{failure} It serves TCP with --tcp only."),
        (Some(Cause::Listen(kind)), _) => format!("{failure}{}", listen_remedy(*kind)),
        (Some(Cause::Refused) | None, _) => return failure,
    };
    Failure::new(explained)
}

fn listen_remedy(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::AddrInUse => ": the port is taken, choose another with --listen",
        io::ErrorKind::AddrNotAvailable => ": no interface here has this address",
        io::ErrorKind::PermissionDenied => ": ports below 1024 need privileges",
        _ => "",
    }
}
