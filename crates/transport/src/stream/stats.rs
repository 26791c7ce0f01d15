//! The state of one stream for its application.

/// The progress of the sending part of a stream, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendStreamStats {
    /// Bytes that the application has written.
    pub written: u64,
    /// Bytes that were sent at least once.
    pub sent: u64,
    /// Bytes that the peer has acknowledged, up to the first gap.
    pub acked: u64,
    /// Bytes that were sent again.
    pub retransmitted: u64,
    /// The peer's limit on bytes sent. RFC 9000 §4.1.
    pub limit: u64,
}

/// The progress of the receiving part of a stream, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecvStreamStats {
    /// The largest received offset; there may be gaps below it.
    pub received: u64,
    /// Bytes that the application has read.
    pub read: u64,
    /// Number of gaps in the received bytes.
    pub gaps: usize,
    /// Our limit on the peer's bytes, as last announced. RFC 9000 §4.1.
    pub limit: u64,
    /// The number of bytes in the stream, once the peer has announced it. RFC 9000 §4.5.
    pub final_size: Option<u64>,
}

/// The limit that keeps a writer waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockedBy {
    /// The peer's limit on the bytes of this stream: MAX_STREAM_DATA has to raise it.
    StreamFlowControl,
    /// The peer's limit on the bytes of all streams: MAX_DATA has to raise it.
    ConnectionFlowControl,
    /// The network: written bytes wait for the congestion window, for the pacer, or for
    /// acknowledgements that free send buffer.
    Congestion,
}
