//! Sessions and streams, as the measurements use them.

use std::net::SocketAddr;

use bytes::Bytes;
use peers_common::command_line::{ClientOptions, ServerOptions};
use peers_common::{Failure, PathCounts};

/// A library.
pub trait Library: 'static {
    /// Its servers.
    type Server: Server;
    /// Its clients.
    type Dialer: Dialer;

    /// Its version.
    fn version() -> String;

    /// Creates the server of a command line.
    ///
    /// # Errors
    /// Returns an error if the identity cannot be read or the address is taken.
    fn server(options: &ServerOptions) -> Result<Self::Server, Failure>;

    /// Creates the client of a command line.
    ///
    /// # Errors
    /// Returns an error if the certificate cannot be read.
    fn dialer(options: &ClientOptions) -> Result<Self::Dialer, Failure>;
}

/// A server that accepts all sessions.
pub trait Server {
    /// The session that it accepts.
    type Session: Session;

    /// The address with the port that was found.
    fn address(&self) -> Result<SocketAddr, Failure>;

    /// Waits for a client. The rest of the handshake is in the second future, so that clients wait for none of the others.
    fn accept(
        &mut self,
    ) -> impl Future<
        Output = Option<impl Future<Output = Result<Self::Session, Failure>> + Send + 'static>,
    >;
}

/// A client.
pub trait Dialer: Clone + Send + Sync + 'static {
    /// The session that it opens.
    type Session: Session;

    /// Opens a session on a connection of its own.
    fn dial(&self) -> impl Future<Output = Result<Self::Session, Failure>> + Send;
}

/// A session; clones are the same session.
pub trait Session: Clone + Send + Sync + 'static {
    /// The sending half of a stream.
    type Sending: Sending;
    /// The receiving half of a stream.
    type Receiving: Receiving;

    /// Opens a bidirectional stream.
    fn open(
        &self,
    ) -> impl Future<Output = Result<(Self::Sending, Self::Receiving), Failure>> + Send;

    /// Waits for a bidirectional stream, and returns `None` at the end of the session.
    fn accept(&self) -> impl Future<Output = Option<(Self::Sending, Self::Receiving)>> + Send;

    /// Sends a datagram as soon as there is room.
    fn send_datagram(&self, payload: Bytes) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Returns the room for datagrams that wait to be sent, in bytes.
    fn datagram_room(&self) -> usize;

    /// Waits for datagrams, and returns how many have come, or `None` at the end of the session.
    fn datagrams(&self) -> impl Future<Output = Option<u64>> + Send;

    /// Returns the counts of the connection.
    fn counts(&self) -> PathCounts;

    /// Closes the session and its connection.
    fn close(&self);
}

/// The sending half of a stream.
pub trait Sending: Send + 'static {
    /// Writes all bytes.
    fn write(&mut self, bytes: Bytes) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Ends the stream.
    fn finish(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// The receiving half of a stream.
pub trait Receiving: Send + 'static {
    /// Reads what has come into `chunks`, and returns their number, or `None` at the end.
    fn read(
        &mut self,
        chunks: &mut [Bytes],
    ) -> impl Future<Output = Result<Option<usize>, Failure>> + Send;
}
