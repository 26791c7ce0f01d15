//! The state of the kernel's clock, for diagnoses: tickets and certificates depend on it.

use std::time::Duration;

/// The state of the clock, as the kernel's time discipline reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockState {
    /// True if a program synchronizes the clock (NTP, PTP).
    pub is_synchronized: bool,
    /// The largest error of the clock, as estimated by that program.
    pub max_error: Duration,
}
