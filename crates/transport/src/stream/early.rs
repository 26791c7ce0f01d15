//! Streams in early data (0-RTT). RFC 9000 §4.6, RFC 9001 §4.6.2.

use courser_wire::StreamId;

use super::{InitialLimits, Streams};

impl Streams {
    /// Returns true for a stream of the client that was opened before the handshake was complete: on
    /// a server some of its data came in 0-RTT packets, which an attacker may have replayed, until
    /// the handshake is complete. Returns false for streams of the server.
    pub fn is_early(&self, id: StreamId) -> bool {
        self.limits.is_early(id)
    }

    /// Counts streams that are opened from now on as early.
    pub(crate) fn on_early_data_begin(&mut self) {
        self.limits.on_early_data_begin();
    }

    /// Processes the end of the handshake: streams that are opened from now on are not early.
    pub(crate) fn on_early_data_end(&mut self) {
        self.limits.on_early_data_end();
    }

    /// Processes the server's rejection of this client's early data: removes all streams, and resets the
    /// limits that were assumed and the credit that was used (RFC 9001 §4.6.2).
    ///
    /// The server has opened no streams yet.
    pub(crate) fn on_early_data_rejected(&mut self) {
        self.table.clear();
        self.queues.clear();
        self.limits.on_early_data_rejected();
        self.flow.on_early_data_rejected();
        self.initial = InitialLimits::default();
        self.events.clear();
        self.deadlines = None;
        self.buffers.reset_counts();
        self.buffers.shrink();
    }
}

#[cfg(test)]
mod tests;
