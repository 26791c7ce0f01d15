//! Limits of a connection that the application changes while it is open.

use courser_transport::Streams;
use courser_wire::Direction;

use crate::api::connection::Connection;

impl Connection {
    /// Changes how many streams of one direction the peer may have open, at most 2^60. See
    /// [`TransportConfig::max_bidi_streams`](crate::TransportConfig::max_bidi_streams).
    ///
    /// A larger number is announced at once; a smaller one takes effect as streams end (RFC 9000 §4.6).
    pub fn set_max_concurrent_streams(&self, direction: Direction, count: u64) {
        self.change_streams(|streams| streams.set_max_streams(direction, count));
    }

    /// Sets the flow-control window of the connection in bytes, which then no longer grows automatically.
    ///
    /// A window larger by half or more is announced at once; a smaller one takes effect as bytes are read
    /// (RFC 9000 §4.1).
    pub fn set_receive_window(&self, bytes: u64) {
        self.change_streams(|streams| streams.set_receive_window(bytes));
    }

    /// Changes the maximum of bytes kept for sending and retransmission, over all streams; at least 4096.
    /// See [`TransportConfig::send_buffer_max`](crate::TransportConfig::send_buffer_max).
    pub fn set_send_buffer_max(&self, bytes: u64) {
        self.change_streams(|streams| streams.set_send_buffer_max(bytes));
    }

    /// Changes the streams of an open connection, and sends frames that announce the change.
    fn change_streams(&self, change: impl FnOnce(&mut Streams)) {
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.handle) {
            change(connection.streams());
        }
        locked.used(self.0.handle, 0);
    }
}
