//! The interface between an application and its host.

use std::net::SocketAddr;

use courser_base::Time;
use courser_transport::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, Endpoint, Streams,
};

use super::SERVER_NAME;

/// The host, as seen by its application during a callback.
pub struct Context<'a> {
    pub(super) now: Time,
    pub(super) endpoint: &'a mut Endpoint,
    pub(super) client: &'a ClientConfig,
}

impl Context<'_> {
    /// Returns the virtual time of the callback.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Starts a connection to `peer` with the TLS configuration of the host.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(&mut self, peer: SocketAddr) -> Result<ConnectionHandle, ConnectError> {
        self.endpoint
            .connect(self.now, self.client, peer, SERVER_NAME)
    }

    /// Returns a connection unless it has been removed. The host sends its packets after the
    /// callback.
    pub fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.endpoint.mark_ready(handle);
        self.endpoint.connection_mut(handle)
    }

    /// Returns the streams of a connection unless it has been removed.
    pub fn streams(&mut self, handle: ConnectionHandle) -> Option<&mut Streams> {
        self.connection(handle).map(Connection::streams)
    }

    /// Closes a connection with an application error code and a reason.
    pub fn close(&mut self, handle: ConnectionHandle, code: u64, reason: &[u8]) {
        let now = self.now;
        if let Some(connection) = self.connection(handle) {
            connection.close(now, code, reason);
        }
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}
