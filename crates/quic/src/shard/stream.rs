//! Streams as their handles name them.

use courser_transport::Streams;
use courser_wire::StreamId;

/// A stream of a connection, as its handles name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    /// The client opened it before the handshake was complete. If the server refuses the early
    /// data, another stream gets the same number.
    pub(crate) is_early: bool,
}

impl Stream {
    /// Describes a stream that was just opened or accepted.
    pub(crate) fn new(streams: &Streams, id: StreamId) -> Self {
        Self {
            id,
            is_early: streams.is_early(id),
        }
    }
}
