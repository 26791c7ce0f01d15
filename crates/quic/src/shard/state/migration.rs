//! Connections of clients that move to another socket or address.

use courser_base::{Side, Time};
use courser_transport::{ConnectionHandle, NewPath, SocketId};

use super::ShardState;

impl ShardState {
    /// Moves all connections that the endpoint has started to a socket.
    pub(crate) fn move_clients(&mut self, now: Time, socket: SocketId, is_same_ip: bool) {
        let handles: Vec<_> = self.endpoint.handles().collect();
        for handle in handles {
            self.move_client(now, handle, socket, is_same_ip);
        }
    }

    /// Moves a client's connection at once, or sends a PING if that is not allowed.
    pub(crate) fn move_client(
        &mut self,
        now: Time,
        handle: ConnectionHandle,
        socket: SocketId,
        is_same_ip: bool,
    ) {
        let Some(connection) = self.endpoint.connection_mut(handle) else {
            return;
        };
        if connection.side() == Side::Server || connection.is_closed() {
            return;
        }
        let path = NewPath {
            local: None,
            socket,
            is_same_address: is_same_ip,
            is_at_once: true,
        };
        if connection.migrations().begin_in_time(now, &path).is_err() {
            connection.pings().request();
        }
        self.endpoint.mark_ready(handle);
    }
}
