//! What one controller leaves to the next.

use courser_base::Time;

use crate::rtt::RttEstimator;

/// What a controller finds that takes over from another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takeover<'a> {
    pub(super) mtu: u16,
    pub(super) window: u64,
    /// The window, unless the other was in slow start: that is to go on then.
    pub(super) ssthresh: Option<u64>,
    pub(super) rtt: &'a RttEstimator,
    pub(super) now: Time,
}
