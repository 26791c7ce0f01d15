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
    /// Returns the time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Starts a connection.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(&mut self, peer: SocketAddr) -> Result<ConnectionHandle, ConnectError> {
        self.endpoint
            .connect(self.now, self.client, peer, SERVER_NAME)
    }

    /// Returns a connection unless it has been removed. It sends after the callback, whatever was
    /// changed.
    pub fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.endpoint.mark_ready(handle);
        self.endpoint.connection_mut(handle)
    }

    /// Returns the streams of a connection unless it has been removed.
    pub fn streams(&mut self, handle: ConnectionHandle) -> Option<&mut Streams> {
        self.connection(handle).map(Connection::streams)
    }

    /// Closes a connection.
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
