//! Frames of packets.

/// A frame of a packet, as far as a trace records it. Sizes and offsets are bytes, times seconds.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Frame {
    /// A PADDING frame, or a run of them.
    Padding,
    /// An ACK frame (RFC 9000 §19.3). Its ranges are in [`Packet::acked`](super::Packet::acked).
    Ack {
        /// The time by which the peer delayed the acknowledgement.
        delay: Option<f64>,
        /// The counts of packets marked ECT(0), ECT(1) and CE.
        ecn: Option<[u64; 3]>,
    },
    /// A CRYPTO frame (RFC 9000 §19.6).
    Crypto {
        /// The length of the data.
        len: u64,
    },
    /// A STREAM frame (RFC 9000 §19.8).
    Stream {
        /// The range of the stream that the frame carries.
        span: Span,
        /// True if the data ends the stream.
        fin: bool,
    },
    /// A DATAGRAM frame (RFC 9221 §4).
    Datagram {
        /// The length of the data.
        len: u64,
    },
    /// A MAX_DATA frame (RFC 9000 §19.9).
    MaxData {
        /// The limit on the bytes of all streams.
        maximum: u64,
    },
    /// A MAX_STREAM_DATA frame (RFC 9000 §19.10).
    MaxStreamData {
        /// The ID of the stream.
        stream: u64,
        /// The limit on the bytes of the stream.
        maximum: u64,
    },
    /// A MAX_STREAMS frame (RFC 9000 §19.11).
    MaxStreams {
        /// True for bidirectional streams.
        is_bidirectional: bool,
        /// The limit on the number of streams.
        maximum: u64,
    },
    /// A DATA_BLOCKED frame (RFC 9000 §19.12).
    DataBlocked {
        /// The limit that blocks the sender.
        limit: u64,
    },
    /// A STREAM_DATA_BLOCKED frame (RFC 9000 §19.13).
    StreamDataBlocked {
        /// The ID of the stream.
        stream: u64,
        /// The limit that blocks the sender.
        limit: u64,
    },
    /// A STREAMS_BLOCKED frame (RFC 9000 §19.14).
    StreamsBlocked {
        /// The limit that blocks the sender.
        limit: u64,
    },
    /// A RESET_STREAM frame (RFC 9000 §19.4).
    ResetStream {
        /// The ID of the stream.
        stream: u64,
    },
    /// A PATH_CHALLENGE frame (RFC 9000 §19.17).
    PathChallenge,
    /// A HANDSHAKE_DONE frame (RFC 9000 §19.20).
    HandshakeDone,
    /// A CONNECTION_CLOSE frame (RFC 9000 §19.19). The sender of its packet is the initiator.
    ConnectionClose(Closed),
    /// A frame that the analysis does not use, or whose fields are missing.
    Other {
        /// The type, spelled as in the trace.
        name: String,
    },
}

impl Frame {
    /// Returns the type, spelled as in quic-events §8.13.
    pub fn name(&self) -> &str {
        match self {
            Self::Padding => "padding",
            Self::Ack { .. } => "ack",
            Self::Crypto { .. } => "crypto",
            Self::Stream { .. } => "stream",
            Self::Datagram { .. } => "datagram",
            Self::MaxData { .. } => "max_data",
            Self::MaxStreamData { .. } => "max_stream_data",
            Self::MaxStreams { .. } => "max_streams",
            Self::DataBlocked { .. } => "data_blocked",
            Self::StreamDataBlocked { .. } => "stream_data_blocked",
            Self::StreamsBlocked { .. } => "streams_blocked",
            Self::ResetStream { .. } => "reset_stream",
            Self::PathChallenge => "path_challenge",
            Self::HandshakeDone => "handshake_done",
            Self::ConnectionClose(_) => "connection_close",
            Self::Other { name } => name,
        }
    }
}

/// A range of bytes of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The ID of the stream.
    pub stream: u64,
    /// The offset of the first byte.
    pub offset: u64,
    /// The length in bytes.
    pub len: u64,
}

/// The end of a connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Closed {
    /// The end that closed the connection: `local` or `remote`.
    pub initiator: Option<String>,
    /// The name or code of the error.
    pub error: Option<String>,
    /// The code of the error, if the trace has it as a number.
    pub code: Option<u64>,
    /// True if an application closed the connection, so that the code is one of its own.
    pub is_application: bool,
    /// The reason phrase; `None` if it is empty.
    pub reason: Option<String>,
    /// The cause: `idle_timeout`, `application`, `error`...
    pub trigger: Option<String>,
}
