//! Events for the application.

use std::net::SocketAddr;

use courser_base::Unreachable;
use courser_wire::{PathId, TransportErrorCode};

use super::error::ConnectionError;
use crate::build::transmit::SocketId;
use crate::datagram::DatagramEvent;
use crate::observed::ObservedPath;
use crate::stream::StreamEvent;

/// An event that the application may want to handle.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// ALPN and server name are known.
    HandshakeDataReady,
    /// The server has refused early data. All streams that were opened before are removed, stream
    /// numbers restart, and queued datagrams are dropped (RFC 9001 §4.6.2). The event precedes
    /// [`Event::Connected`].
    EarlyDataRejected,
    /// The handshake is complete: data may flow both ways.
    Connected,
    /// The handshake is confirmed (RFC 9001 §4.1.2).
    Confirmed,
    /// An event of the streams.
    Stream(StreamEvent),
    /// An event of the datagrams.
    Datagram(DatagramEvent),
    /// Requests for a PING were answered: see [`Pings::answer`](crate::Pings::answer).
    PingAnswered,
    /// The system or the network reports that the first packets of this client do not reach the server:
    /// nothing listens on its port, or there is no route to it. Occurs once at most, and only before the
    /// server has answered.
    ///
    /// The handshake continues, because the report may be forged by an attacker on the path, or be
    /// outdated in a moment. A client with another address to try need not wait.
    Unreachable(Unreachable),
    /// Three probe timeouts in a row have expired without an acknowledgement: the path may be dead. The
    /// connection continues probing until its idle timeout, or until
    /// [`TransportConfig::max_ptos`](crate::TransportConfig::max_ptos) ends it. Occurs only after the
    /// handshake is complete, and only while something is in flight.
    PathSilent,
    /// A packet was acknowledged after [`Event::PathSilent`].
    PathAnswers,
    /// Another path is in use: the peer's address changed, or our end moved.
    PathChanged {
        /// The address in use. On a server it is not yet validated.
        peer: SocketAddr,
    },
    /// The path that our end moved to is validated and in use (RFC 9000 §9.2, §9.6).
    Migrated,
    /// The path to which our end began to move was not validated in time. The connection uses the
    /// previous path.
    MigrationFailed,
    /// [`Connection::max_datagram_size`](super::Connection::max_datagram_size) may have changed, because the
    /// path carries larger or smaller packets than before.
    DatagramSizeChanged,
    /// A caller that can determine the MTU of the interface towards the peer
    /// [sets it](super::Connection::set_interface_mtu) now: the search for larger datagrams begins on the
    /// path in use, a moment after the handshake at the latest, or the handshake is complete with datagrams larger than 1200 bytes. It may occur
    /// again for another path.
    InterfaceMtuWanted {
        /// The address of the peer.
        peer: SocketAddr,
        /// The socket from which the connection sends to it.
        socket: SocketId,
    },
    /// After [`OpenPathError::NoConnectionId`](crate::OpenPathError::NoConnectionId): the missing connection IDs have arrived, or
    /// did not within ten seconds. Another attempt gives the answer.
    MayOpenPath,
    /// A packet on this path was not acknowledged in time, and the path carries no data while others do. It is probed, and
    /// given up if it remains silent for five seconds or three probe timeouts while another path answers.
    PathSuspect(PathId),
    /// A packet was acknowledged after [`Event::PathSuspect`]: the path carries data again.
    PathRecovered(PathId),
    /// A further path is validated and may carry data (RFC 10069 §3.1).
    PathOpened(PathId),
    /// A path was given up, with the code of PATH_ABANDON (RFC 10069 §4.2).
    ///
    /// A client tries one again that was given up because it did not answer: at once, for 30 seconds, and then after
    /// pauses of 5 seconds to 5 minutes. [`Event::PathOpened`] has its new ID.
    PathClosed {
        /// The path.
        path: PathId,
        /// The reason: NO_ERROR or a code for paths.
        code: TransportErrorCode,
    },
    /// The peer has reported another address of ours (draft-ietf-quic-address-discovery-00). This is a claim.
    AddressObserved(ObservedPath),
    /// The connection is over. The event occurs once; only draining follows, and no event of
    /// streams or datagrams.
    ///
    /// Unless we ended it, data that had arrived can still be accepted and read from
    /// [`Connection::streams`](super::Connection::streams) until the owner
    /// [releases](crate::Endpoint::release) the connection.
    Lost(ConnectionError),
}
