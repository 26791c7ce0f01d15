//! The sockets of an endpoint. It has more than one only after its socket was replaced.

use courser_base::Time;

use super::Endpoint;
use crate::build::transmit::SocketId;

impl Endpoint {
    /// Sets the socket of later connections, and of datagrams that are passed to
    /// [`handle_datagrams`](Endpoint::handle_datagrams). Socket 0 by default.
    pub fn set_socket(&mut self, socket: SocketId) {
        self.origins.set_socket(socket);
    }

    /// Returns the socket of new connections.
    pub fn socket(&self) -> SocketId {
        self.origins.socket()
    }

    /// Sets the timers of the connections in the queue of [`Endpoint::next_sender`], and removes those that
    /// are drained.
    ///
    /// [`Endpoint::poll_transmit`] does this for connections that can send. A driver whose socket accepts no
    /// datagrams calls this from time to time; otherwise the timeouts of these connections would not expire.
    /// The cost is linear in their number.
    pub fn settle_senders(&mut self, now: Time) {
        for index in 0..self.senders() {
            let Some(&handle) = self.table.senders().get(index) else {
                break;
            };
            self.guard(|endpoint| endpoint.settle(now, handle));
        }
    }

    /// Returns true while a connection, a waiting client or a reply needs a socket. Examines all of them.
    pub fn uses_socket(&mut self, socket: SocketId) -> bool {
        self.socket() == socket
            || self.table.uses_socket(socket)
            || self.admission.uses_socket(socket)
            || self.stateless.uses_socket(socket)
    }
}
