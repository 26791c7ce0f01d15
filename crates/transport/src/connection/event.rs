//! What the application is told.

use std::net::SocketAddr;

use super::error::ConnectionError;
use crate::datagram::DatagramEvent;
use crate::stream::StreamEvent;

/// Something the application may want to react to.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// ALPN and server name are known.
    HandshakeDataReady,
    /// The handshake is complete: data may flow both ways.
    Connected,
    /// The handshake is confirmed (RFC 9001 §4.1.2).
    Confirmed,
    /// Something about streams.
    Stream(StreamEvent),
    /// Something about datagrams.
    Datagram(DatagramEvent),
    /// The peer's address changed and the new one is in use.
    PathChanged {
        /// The new address; not yet proven.
        peer: SocketAddr,
    },
    /// The connection is over. Comes once; nothing but draining follows, and no event of streams
    /// or datagrams.
    ///
    /// Unless we ended it, what had arrived can still be accepted and read, from
    /// [`Connection::streams`](super::Connection::streams) until the endpoint forgets the
    /// connection, or from [`Connection::take_unread`](super::Connection::take_unread).
    Lost(ConnectionError),
}
