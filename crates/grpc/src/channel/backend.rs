//! A server at one address, and what its user sees of it.

use std::net::SocketAddr;

use courser_client::hooks::Destination;
use http::Uri;

/// A server at one address.
pub(super) struct Server {
    pub(super) destination: Destination,
    pub(super) target: usize,
    pub(super) address: SocketAddr,
    pub(super) uri: Uri,
}

/// The state of one address of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Backend {
    /// The address of the server.
    pub address: SocketAddr,
    /// True if calls are sent to it.
    pub is_ready: bool,
    /// The attempts to connect to it that failed in a row.
    pub failures: u32,
}
