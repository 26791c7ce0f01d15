//! Probe timeout and its backoff, RFC 9002 §6.2.

use std::time::Duration;

use crate::rtt::RttEstimator;

/// How often in a row the probe timeout has expired, and what that makes of its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pto {
    count: u32,
}

impl Pto {
    /// A timeout that has not expired.
    pub const fn new() -> Self {
        Self { count: 0 }
    }

    /// Expiries since the last acknowledgement.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The timer has expired: the next one takes twice as long. Marks nothing as lost.
    pub fn on_timeout(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// Something was newly acknowledged. Ends the backoff, except at a client that cannot be
    /// sure yet that the server has validated its address: it must not probe faster while the
    /// server may be unable to answer. RFC 9002 §6.2.1.
    pub fn on_ack_received(&mut self, is_address_validated_by_peer: bool) {
        if is_address_validated_by_peer {
            self.reset();
        }
    }

    /// Ends the backoff, as when keys are discarded. RFC 9002 §6.2.2.
    pub fn reset(&mut self) {
        self.count = 0;
    }

    /// The present timeout, backoff included, counted from the last ack-eliciting packet.
    pub fn duration(&self, rtt: &RttEstimator, max_ack_delay: Duration) -> Duration {
        Self::period(rtt, max_ack_delay, self.count)
    }

    /// `(smoothed + max(4 * rttvar, granularity) + max_ack_delay) * 2^count`. RFC 9002 §6.2.1.
    ///
    /// `max_ack_delay` is zero for the Initial and Handshake spaces. The exponent is bounded and
    /// the product saturates.
    pub fn period(rtt: &RttEstimator, max_ack_delay: Duration, count: u32) -> Duration {
        let base = rtt.pto_base().saturating_add(max_ack_delay);
        base.saturating_mul(1 << count.min(MAX_EXPONENT))
    }
}

/// Idle timeouts end a connection long before: 2^16 times the shortest timeout is a minute.
const MAX_EXPONENT: u32 = 16;

#[cfg(test)]
mod tests;
