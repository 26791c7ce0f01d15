//! The probe timeout and its backoff, RFC 9002 §6.2.

use std::time::Duration;

use crate::rtt::RttEstimator;

/// The probe timeout, which doubles with each expiry in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pto {
    count: u32,
}

impl Pto {
    /// Creates a timeout that has not expired.
    pub const fn new() -> Self {
        Self { count: 0 }
    }

    /// Returns the number of expiries since the last acknowledgement.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Doubles the timeout after an expiry. No packet is declared lost.
    pub fn on_timeout(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// Ends the backoff after a new acknowledgement, except at a client whose address the server
    /// may not have validated: such a client must not probe faster while the server may be unable
    /// to respond. RFC 9002 §6.2.1.
    pub fn on_ack_received(&mut self, is_address_validated_by_peer: bool) {
        if is_address_validated_by_peer {
            self.reset();
        }
    }

    /// Ends the backoff, for example when keys are discarded. RFC 9002 §6.2.2.
    pub fn reset(&mut self) {
        self.count = 0;
    }

    /// Returns the present timeout with its backoff, counted from the last ack-eliciting packet.
    pub fn duration(&self, rtt: &RttEstimator, max_ack_delay: Duration) -> Duration {
        Self::period(rtt, max_ack_delay, self.count)
    }

    /// Returns the timeout after `count` expiries,
    /// `(smoothed + max(4 * rttvar, granularity) + max_ack_delay) * 2^count`. RFC 9002 §6.2.1.
    ///
    /// `max_ack_delay` is zero for the Initial and Handshake spaces. The exponent is bounded and
    /// the product saturates.
    pub fn period(rtt: &RttEstimator, max_ack_delay: Duration, count: u32) -> Duration {
        let base = rtt.pto_base().saturating_add(max_ack_delay);
        base.saturating_mul(1 << count.min(MAX_EXPONENT))
    }
}

/// The largest number of doublings. 2^16 times the shortest timeout is a minute, and idle timeouts
/// end most connections earlier.
const MAX_EXPONENT: u32 = 16;

#[cfg(test)]
mod tests;
