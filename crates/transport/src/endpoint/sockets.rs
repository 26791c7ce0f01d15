//! The sockets of an endpoint. One is enough, until it is replaced.

use super::Endpoint;
use crate::build::transmit::SocketId;

impl Endpoint {
    /// Sets the socket of later connections, and of datagrams that
    /// [`handle_datagrams`](Endpoint::handle_datagrams) takes. At first it is socket 0.
    pub fn set_socket(&mut self, socket: SocketId) {
        self.socket = socket;
    }

    /// Returns the socket of new connections.
    pub fn socket(&self) -> SocketId {
        self.socket
    }

    /// Returns true while a connection, a waiting client or a reply needs a socket. Looks at all of
    /// them.
    pub fn uses_socket(&mut self, socket: SocketId) -> bool {
        let needs = |owner: &mut super::Slot| {
            let connection = owner.connection.as_deref_mut();
            connection.is_some_and(|it| !it.is_drained() && it.migrations().uses_socket(socket))
        };
        self.socket == socket
            || self.slots.iter_mut().any(needs)
            || self.room.waiting.values().any(|it| it.socket == socket)
            || self.replies.iter().any(|reply| reply.socket == socket)
    }
}
