//! Limits that the application changes during a connection.

use courser_wire::Direction;

use super::Streams;

/// The minimum of [`Streams::set_send_buffer_max`], as in
/// [`TransportConfig::validate`](crate::TransportConfig::validate).
const MIN_SEND_BUFFER_MAX: u64 = 4096;

impl Streams {
    /// Changes how many streams of one direction the peer may have open at a time, at most 2^60.
    ///
    /// A larger number is announced at once. A smaller one takes effect as streams end: limits that were
    /// announced are never withdrawn (RFC 9000 §4.6).
    pub fn set_max_streams(&mut self, direction: Direction, count: u64) {
        self.limits.set_max(direction, count);
    }

    /// Raises how many streams of one direction the peer may have open to at least `count`; see
    /// [`set_max_streams`](Self::set_max_streams).
    pub fn raise_max_streams(&mut self, direction: Direction, count: u64) {
        self.limits.raise_max(direction, count);
    }

    /// Fixes the flow-control window of the connection at `bytes`.
    ///
    /// A window that is larger by half or more is announced at once. A smaller one takes effect as
    /// bytes are read: credit is never withdrawn (RFC 9000 §4.1).
    pub fn set_receive_window(&mut self, bytes: u64) {
        self.flow.receive.set_size(bytes);
        self.flow.update_credit();
    }

    /// Changes the maximum of bytes kept for sending and retransmission, over all streams; at least 4096.
    pub fn set_send_buffer_max(&mut self, bytes: u64) {
        if self.buffers.sending.set_max(bytes.max(MIN_SEND_BUFFER_MAX)) {
            self.wake_writers();
        }
    }
}
