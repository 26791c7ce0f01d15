//! Facts of acknowledgements.

use std::time::Duration;

use courser_wire::frame::Ack;

/// Maximum number of ranges recorded for one ACK frame, newest first. A peer may send hundreds.
pub const MAX_ACK_RANGES: usize = 64;

/// Returns the delay of an ACK or PATH_ACK frame.
pub(super) fn delay_of(ack: &Ack<'_>, ack_delay_exponent: u64) -> Duration {
    let exponent = ack_delay_exponent.min(20); // RFC 9000 §18.2
    Duration::from_micros(ack.delay.saturating_mul(1 << exponent))
}
