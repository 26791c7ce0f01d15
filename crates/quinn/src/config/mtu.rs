//! The search for the path MTU, and the frequency of acknowledgements.

use std::time::Duration;

use crate::VarInt;
use crate::unsupported::note;

/// The search for larger datagrams. RFC 8899.
#[derive(Clone, Debug)]
pub struct MtuDiscoveryConfig {
    interval: Duration,
    pub(super) upper_bound: u16,
    minimum_change: u16,
    black_hole_cooldown: Duration,
}

impl Default for MtuDiscoveryConfig {
    /// Searches up to 1452 bytes, which fit a path of Ethernet.
    fn default() -> Self {
        Self::up_to(1452)
    }
}

impl MtuDiscoveryConfig {
    pub(super) const fn up_to(upper_bound: u16) -> Self {
        Self {
            interval: Duration::from_secs(600),
            upper_bound,
            minimum_change: 20,
            black_hole_cooldown: Duration::from_secs(60),
        }
    }

    /// Sets the largest payload of UDP that the search tries, in bytes.
    pub fn upper_bound(&mut self, value: u16) -> &mut Self {
        self.upper_bound = value;
        self
    }

    /// Has no effect: courser searches again after 600 s, and when the path changes.
    pub fn interval(&mut self, value: Duration) -> &mut Self {
        note("MtuDiscoveryConfig::interval");
        self.interval = value;
        self
    }

    /// Has no effect: courser tries a size that was lost again with the next search.
    pub fn black_hole_cooldown(&mut self, value: Duration) -> &mut Self {
        note("MtuDiscoveryConfig::black_hole_cooldown");
        self.black_hole_cooldown = value;
        self
    }

    /// Has no effect: courser chooses the sizes that the search tries.
    pub fn minimum_change(&mut self, value: u16) -> &mut Self {
        note("MtuDiscoveryConfig::minimum_change");
        self.minimum_change = value;
        self
    }
}

/// Requests to the peer to acknowledge less often (draft-ietf-quic-ack-frequency-12). courser chooses the
/// values itself.
#[derive(Clone, Debug)]
pub struct AckFrequencyConfig {
    ack_eliciting_threshold: VarInt,
    max_ack_delay: Option<Duration>,
    reordering_threshold: VarInt,
}

impl Default for AckFrequencyConfig {
    fn default() -> Self {
        Self {
            ack_eliciting_threshold: VarInt::from_u32(1),
            max_ack_delay: None,
            reordering_threshold: VarInt::from_u32(2),
        }
    }
}

impl AckFrequencyConfig {
    /// Has no effect: courser chooses the number of packets per acknowledgement.
    pub fn ack_eliciting_threshold(&mut self, value: VarInt) -> &mut Self {
        note("AckFrequencyConfig::ack_eliciting_threshold");
        self.ack_eliciting_threshold = value;
        self
    }

    /// Has no effect: courser chooses the delay of acknowledgements.
    pub fn max_ack_delay(&mut self, value: Option<Duration>) -> &mut Self {
        note("AckFrequencyConfig::max_ack_delay");
        self.max_ack_delay = value;
        self
    }

    /// Has no effect: courser chooses the threshold.
    pub fn reordering_threshold(&mut self, value: VarInt) -> &mut Self {
        note("AckFrequencyConfig::reordering_threshold");
        self.reordering_threshold = value;
        self
    }
}
