//! Settings of streams.

/// Limits and windows of all streams of one connection.
///
/// Bounds everything of which a peer can demand more. Windows are in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamsConfig {
    /// Bidirectional streams that the peer may have open at the same time (attack limit K14).
    pub max_bidi: u64,
    /// Unidirectional streams that the peer may have open at the same time (attack limit K14).
    pub max_uni: u64,
    /// Initial receive window of a stream (attack limit K16).
    pub stream_receive_window: u64,
    /// Maximum to which the receive window of a stream may grow.
    pub stream_receive_window_max: u64,
    /// Initial receive window of the connection (attack limit K16).
    pub receive_window: u64,
    /// Maximum to which the receive window of the connection may grow.
    pub receive_window_max: u64,
    /// Unsent bytes that a writer may queue per stream.
    pub unsent_limit: u64,
    /// Bytes kept for all streams together until the peer has acknowledged them.
    pub send_buffer_max: u64,
    /// Pieces of out-of-order data one stream may hold (attack limit K02).
    pub max_gaps_per_stream: usize,
    /// Pieces of out-of-order data all streams together may hold (attack limit K02).
    pub max_gaps: usize,
    /// True if the peer may send RESET_STREAM_AT.
    pub reset_stream_at: bool,
    /// True if streams of one priority take turns.
    pub are_fair: bool,
}

/// Returns the gaps allowed in a receive window of this many bytes: `min`, plus the number that
/// three per cent of loss cause in a window of full packets. Windows grow only for peers that
/// deliver, so a flood of tiny pieces (attack A26) is stopped at the small number. A window that
/// the configuration makes large from the start counts in full: compared with its memory the gaps take
/// little, and it loses as many packets as a window that has grown.
pub(super) fn max_gaps(min: usize, window: u64) -> usize {
    min.saturating_add(usize::try_from(window / BYTES_PER_GAP).unwrap_or(usize::MAX))
}

const BYTES_PER_GAP: u64 = 32 << 10;

impl Default for StreamsConfig {
    fn default() -> Self {
        Self {
            max_bidi: 100,
            max_uni: 100,
            stream_receive_window: 256 << 10,
            stream_receive_window_max: 4 << 20,
            receive_window: 1 << 20,
            receive_window_max: 16 << 20,
            unsent_limit: 256 << 10,
            send_buffer_max: 16 << 20,
            max_gaps_per_stream: 128,
            max_gaps: 512,
            reset_stream_at: true,
            are_fair: true,
        }
    }
}
