//! Clients that have connected without TLS.

use std::net::SocketAddr;

/// The address of a client that has connected without TLS, in the extensions of its requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlainClient(SocketAddr);

impl PlainClient {
    /// Creates the extension.
    pub(crate) const fn new(address: SocketAddr) -> Self {
        Self(address)
    }

    /// Returns the address.
    pub const fn address(&self) -> SocketAddr {
        self.0
    }
}
