//! Operations for the crates of courser that implement HTTP on connections and streams.
//!
//! None of this is part of the public API. `courser` does not re-export it, and it changes without
//! notice.
//!
//! HTTP/3 needs steps that take the lock of an endpoint once instead of several times, and flow
//! control that depends on what is read. The server and the client need a share of the memory budget,
//! the amount of unacknowledged data, and session tickets for each server.
//!
//! Each type has a trait, so that only a crate that imports it can call the operations (`docs/design/0015`). The
//! traits are no second layer: each operation has its body in the implementation of its trait and nowhere
//! else (`docs/design/0047`).

mod connection;
mod endpoint;
mod locked_streams;
mod streams;

pub use courser_transport::Level;
pub use courser_udp::{ErrorCause, is_transient, parse_ip};

pub use self::connection::{Accepted, ConnectionHooks, OpenedInSession, OpenedRequest};
pub use self::endpoint::{EndpointHooks, inherit};
pub use self::locked_streams::LockedStreams;
pub use self::streams::{RecvStreamHooks, SendStreamHooks};
pub use crate::api::write::Write;
pub use crate::config::{ClientConfigHooks, IdentityHooks};
pub use crate::runtime::PeerSocket;
pub use crate::shard::lock::Afterwards;
pub use crate::shard::wakers::{Ticket, Waiters};

/// Returns true if tasks can be spawned and timers set here.
pub fn has_runtime() -> bool {
    crate::runtime::Current::require().is_ok()
}
