//! The routes of one connection.

use std::net::SocketAddr;

use courser_base::FourTuple;
use courser_wire::ConnectionId;

use crate::cid::ResetToken;

/// The routes to one connection, except for the IDs issued to its peer, which the connection stores.
/// [`Router`](super::Router) changes them together with its tables.
#[derive(Debug, Default)]
pub struct ConnectionRoutes {
    /// The client's first ID. It is routed until the connection is removed; otherwise a late copy of the
    /// first Initial would look like another client.
    pub initial_id: Option<ConnectionId>,
    /// Stateless reset tokens, each with the address from which it is valid.
    pub reset_tokens: Vec<(SocketAddr, ResetToken)>,
    /// The destination address and ID of the connection's packets.
    pub peer_id: Option<(SocketAddr, ConnectionId)>,
    /// The addresses of a connection without IDs.
    pub four_tuple: Option<Box<FourTuple>>,
}
