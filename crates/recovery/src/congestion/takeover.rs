//! The state that one controller hands over to the next.

use courser_base::Time;

use crate::rtt::RttEstimator;

/// The state of the previous controller and of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takeover<'a> {
    pub(super) mtu: u16,
    pub(super) window: u64,
    /// The window if slow start was over; `None` if it should continue.
    pub(super) ssthresh: Option<u64>,
    pub(super) rtt: &'a RttEstimator,
    pub(super) now: Time,
}
