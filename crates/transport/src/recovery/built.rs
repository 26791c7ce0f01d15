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
}
