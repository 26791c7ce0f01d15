//! The sockets of an endpoint. One is enough, until it is replaced.

use courser_base::Time;

use super::Endpoint;
use crate::build::transmit::SocketId;

impl Endpoint {
    /// Sets the socket of later connections, and of datagrams that
    /// [`handle_datagrams`](Endpoint::handle_datagrams) takes. At first it is socket 0.
    pub fn set_socket(&mut self, socket: SocketId) {
        self.origins.set_socket(socket);
    }

    /// Returns the socket of new connections.
    pub fn socket(&self) -> SocketId {
        self.origins.socket()
    }

    /// Sets the timers of the connections that wait for their turn to send, and removes those that are
    /// drained.
    ///
    /// [`Endpoint::poll_transmit`] does this for connections that can send. A driver whose socket takes
    /// nothing calls this now and then: otherwise such connections would never run into their timeouts.
    /// Costs a step for each of them.
    pub fn settle_senders(&mut self, now: Time) {
        for index in 0..self.senders() {
            let Some(&handle) = self.table.senders().get(index) else {
                break;
            };
            self.guard(|endpoint| endpoint.settle(now, handle));
        }
    }

    /// Returns true while a connection, a waiting client or a reply needs a socket. Looks at all of
    /// them.
    pub fn uses_socket(&mut self, socket: SocketId) -> bool {
        self.socket() == socket
            || self.table.uses_socket(socket)
            || self.admission.uses_socket(socket)
            || self.stateless.uses_socket(socket)
    }
}
