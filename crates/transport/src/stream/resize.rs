//! Limits that the application changes during a connection.

use courser_wire::Direction;

use super::{Streams, Wish, index};

/// The smallest limit of bytes kept for sending, as in
/// [`TransportConfig::validate`](crate::TransportConfig::validate).
const SEND_BUFFER_LEAST: u64 = 4096;

impl Streams {
    /// Changes how many streams of one direction the peer may have open at a time, at most 2^60.
    ///
    /// A larger number is announced at once. A smaller one takes effect as streams end: limits that were
    /// announced are never withdrawn (RFC 9000 §4.6).
    pub fn set_max_streams(&mut self, direction: Direction, count: u64) {
        let peer = &mut self.peer[index(direction)];
        peer.set_window(count);
        if !self.is_over && peer.wants_update() {
            self.wish(Wish::max_streams(direction));
        }
    }

    /// Fixes the flow-control window of the connection at so many bytes.
    ///
    /// A window that is larger by half or more is announced at once. A smaller one takes effect as
    /// bytes are read: credit is never withdrawn (RFC 9000 §4.1).
    pub fn set_receive_window(&mut self, bytes: u64) {
        self.window.set_size(bytes);
        if !self.is_over {
            self.credit_connection();
        }
    }

    /// Changes the maximum of bytes kept for sending and retransmission, over all streams; at least 4096.
    pub fn set_send_buffer_max(&mut self, bytes: u64) {
        self.config.send_buffer_max = bytes.max(SEND_BUFFER_LEAST);
        self.on_congestion_window(self.totals.congestion_window);
    }
}
