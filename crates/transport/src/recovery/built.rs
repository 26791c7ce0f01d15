//! A packet that is about to be remembered.

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
    /// Its QUIC bit is cleared (RFC 9287).
    pub(crate) quic_bit_cleared: bool,
    /// It is not in the first datagram of its batch.
    pub(crate) follows_in_batch: bool,
}
