//! Adds the flags that help to failures.

use std::io;
use std::net::SocketAddr;

use courser_measure::Cause;

pub(crate) use courser_measure::Failure;

use crate::handshake::{self, Tool};

/// Adds the flags of `tool` that help to a failure.
pub(crate) fn explain(failure: Failure, tool: Tool) -> Failure {
    let explained = match (failure.cause(), tool) {
        (Some(Cause::Handshake(cause)), _) => handshake::explain(cause, tool),
        (Some(Cause::Protocol), _) => format!("{failure}: {}", handshake::protocol_remedy(tool)),
        (Some(Cause::Refused), Tool::Perf) => {
            format!("{failure} A perf server needs --tcp to serve TCP.")
        }
        (Some(Cause::Listen(kind)), _) => format!("{failure}{}", listen_remedy(*kind, "--listen")),
        (Some(Cause::Refused) | None, _) => return failure,
    };
    Failure::new(explained)
}

/// Creates the failure for an address of a flag other than --listen.
pub(crate) fn cannot_listen(flag: &str, address: SocketAddr, error: &io::Error) -> Failure {
    let remedy = listen_remedy(error.kind(), flag);
    Failure::new(format!("cannot listen on tcp {address}: {error}{remedy}"))
}

fn listen_remedy(kind: io::ErrorKind, flag: &str) -> String {
    match kind {
        io::ErrorKind::AddrInUse => format!(": the port is in use, choose another with {flag}"),
        io::ErrorKind::AddrNotAvailable => {
            ": no interface of this machine has this address".to_owned()
        }
        io::ErrorKind::PermissionDenied => ": ports below 1024 need privileges".to_owned(),
        _ => String::new(),
    }
}
