//! A packet for which a record is about to be added.

use crate::space::sent::SentFrames;

/// A packet that was just built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Built {
    pub(crate) number: u64,
    /// Bytes on the wire.
    pub(crate) len: usize,
    pub(crate) frames: SentFrames,
    pub(crate) ack_eliciting: bool,
    pub(crate) in_flight: bool,
    /// True if its QUIC bit is cleared (RFC 9287).
    pub(crate) quic_bit_cleared: bool,
    /// True if it is not in the first datagram of its batch.
    pub(crate) follows_in_batch: bool,
}
