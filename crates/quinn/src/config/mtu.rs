//! The search for the path MTU, and the frequency of acknowledgements.

use std::time::Duration;

use crate::VarInt;
use crate::unsupported::note;

/// The search for larger datagrams. RFC 8899.
#[derive(Clone, Debug)]
pub struct MtuDiscoveryConfig {
    pub(super) upper_bound: u16,
}

impl Default for MtuDiscoveryConfig {
    /// Searches up to 1452 bytes, which fit a path of Ethernet.
    fn default() -> Self {
        Self { upper_bound: 1452 }
    }
}

impl MtuDiscoveryConfig {
    /// Sets the largest payload of UDP that the search tries, in bytes.
    pub fn upper_bound(&mut self, value: u16) -> &mut Self {
        self.upper_bound = value;
        self
    }

    /// Has no effect: courser searches again after 600 s, and when the path changes.
    pub fn interval(&mut self, _value: Duration) -> &mut Self {
        note("MtuDiscoveryConfig::interval");
        self
    }

    /// Has no effect: courser tries a size that was lost again with the next search.
    pub fn black_hole_cooldown(&mut self, _value: Duration) -> &mut Self {
        note("MtuDiscoveryConfig::black_hole_cooldown");
        self
    }

    /// Has no effect: courser chooses the sizes that the search tries.
    pub fn minimum_change(&mut self, _value: u16) -> &mut Self {
        note("MtuDiscoveryConfig::minimum_change");
        self
    }
}

/// Requests to the peer to acknowledge less often (draft-ietf-quic-ack-frequency-12). courser chooses the
/// values itself.
#[derive(Clone, Debug, Default)]
pub struct AckFrequencyConfig {
    _private: (),
}

impl AckFrequencyConfig {
    /// Has no effect: courser chooses the number of packets per acknowledgement.
    pub fn ack_eliciting_threshold(&mut self, _value: VarInt) -> &mut Self {
        note("AckFrequencyConfig::ack_eliciting_threshold");
        self
    }

    /// Has no effect: courser chooses the delay of acknowledgements.
    pub fn max_ack_delay(&mut self, _value: Option<Duration>) -> &mut Self {
        note("AckFrequencyConfig::max_ack_delay");
        self
    }

    /// Has no effect: courser chooses the threshold.
    pub fn reordering_threshold(&mut self, _value: VarInt) -> &mut Self {
        note("AckFrequencyConfig::reordering_threshold");
        self
    }
}
