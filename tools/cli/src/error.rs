//! Failures for users: one line that names the flags that help.

use std::io;
use std::net::SocketAddr;

use courser_measure::Cause;

pub(crate) use courser_measure::Failure;

use crate::handshake::{self, Tool};

/// Adds the flags of a command that help to a failure.
pub(crate) fn explain(failure: Failure, tool: Tool) -> Failure {
    let explained = match (failure.cause(), tool) {
        (Some(Cause::Handshake(cause)), _) => handshake::explain(cause, tool),
        (Some(Cause::Protocol), _) => format!("{failure}: {}", handshake::protocol_remedy(tool)),
        (Some(Cause::Refused), Tool::Perf) => format!("{failure} It serves TCP with --tcp only."),
        (Some(Cause::Listen(kind)), _) => format!("{failure}{}", listen_remedy(*kind, "--listen")),
        (Some(Cause::Refused) | None, _) => return failure,
    };
    Failure::new(explained)
}

/// Makes the failure of an address that another flag than --listen names.
pub(crate) fn cannot_listen(flag: &str, address: SocketAddr, error: &io::Error) -> Failure {
    let remedy = listen_remedy(error.kind(), flag);
    Failure::new(format!("cannot listen on tcp {address}: {error}{remedy}"))
}

fn listen_remedy(kind: io::ErrorKind, flag: &str) -> String {
    match kind {
        io::ErrorKind::AddrInUse => format!(": the port is taken, choose another with {flag}"),
        io::ErrorKind::AddrNotAvailable => ": no interface here has this address".to_owned(),
        io::ErrorKind::PermissionDenied => ": ports below 1024 need privileges".to_owned(),
        _ => String::new(),
    }
}
