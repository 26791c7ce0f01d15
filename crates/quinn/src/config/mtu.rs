//! The search for the path MTU, and the frequency of acknowledgements.

use std::fmt;
use std::time::Duration;

use courser_quic as quic;

use crate::VarInt;

/// The search for larger datagrams. RFC 8899.
#[derive(Clone)]
pub struct MtuDiscoveryConfig {
    upper_bound: u16,
    /// Values that the program has set; courser's own apply to the others.
    interval: Option<Duration>,
    minimum_change: Option<u16>,
    black_hole_cooldown: Option<Duration>,
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
            upper_bound,
            interval: None,
            minimum_change: None,
            black_hole_cooldown: None,
        }
    }

    /// Sets the largest payload of UDP that the search tries, in bytes.
    pub fn upper_bound(&mut self, value: u16) -> &mut Self {
        self.upper_bound = value;
        self
    }

    /// Sets the time after which larger datagrams are tried again, at least 1 ms. Default 600 s.
    pub fn interval(&mut self, value: Duration) -> &mut Self {
        self.interval = Some(value);
        self
    }

    /// Sets the time without a search after the path was found to drop large datagrams. Unless it is set, the search
    /// begins at once the first time, and after 60 s later.
    pub fn black_hole_cooldown(&mut self, value: Duration) -> &mut Self {
        self.black_hole_cooldown = Some(value);
        self
    }

    /// Sets the number of bytes below which a larger size is not worth another probe, at least 1. Default 6; `Debug`
    /// shows quinn's 20.
    pub fn minimum_change(&mut self, value: u16) -> &mut Self {
        self.minimum_change = Some(value);
        self
    }

    /// Writes the settings into those of courser.
    pub(super) fn apply(&self, config: &mut quic::TransportConfig) {
        config.mtu_max = self.upper_bound.clamp(super::MIN_MTU, super::MAX_MTU);
        let usual = quic::TransportConfig::default();
        let interval = self.interval.unwrap_or(usual.mtu_raise_interval);
        config.mtu_raise_interval = interval.max(Duration::from_millis(1));
        config.mtu_black_hole_delay = self.black_hole_cooldown;
        let change = self.minimum_change.unwrap_or(usual.mtu_resolution);
        config.mtu_resolution = change.max(1);
    }
}

impl fmt::Debug for MtuDiscoveryConfig {
    /// Shows quinn's names, and its defaults for what is not set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interval = self.interval.unwrap_or(Duration::from_secs(600));
        let cooldown = self.black_hole_cooldown.unwrap_or(Duration::from_secs(60));
        f.debug_struct("MtuDiscoveryConfig")
            .field("interval", &interval)
            .field("upper_bound", &self.upper_bound)
            .field("minimum_change", &self.minimum_change.unwrap_or(20))
            .field("black_hole_cooldown", &cooldown)
            .finish()
    }
}

/// Requests to the peer to acknowledge less often (draft-ietf-quic-ack-frequency-12). Values that are not set
/// follow the path.
#[derive(Clone, Default)]
pub struct AckFrequencyConfig {
    ack_eliciting_threshold: Option<VarInt>,
    max_ack_delay: Option<Duration>,
    reordering_threshold: Option<VarInt>,
}

impl AckFrequencyConfig {
    /// Sets the packets that the peer may receive without acknowledging them. Unless it is set, an eighth of a large
    /// congestion window, otherwise 1.
    pub fn ack_eliciting_threshold(&mut self, value: VarInt) -> &mut Self {
        self.ack_eliciting_threshold = Some(value);
        self
    }

    /// Sets the delay of acknowledgements that is requested of the peer, below 2^14 ms. `None`, the default, is a quarter
    /// of the round-trip time, and at most the peer's `max_ack_delay`.
    pub fn max_ack_delay(&mut self, value: Option<Duration>) -> &mut Self {
        self.max_ack_delay = value;
        self
    }

    /// Sets the packets out of order after which the peer acknowledges at once; 0 for none. Unless it is set, the
    /// threshold of loss detection.
    pub fn reordering_threshold(&mut self, value: VarInt) -> &mut Self {
        self.reordering_threshold = Some(value);
        self
    }

    /// Writes the settings into those of courser.
    pub(super) fn apply(&self, config: &mut quic::TransportConfig) {
        config.ack_threshold = self.ack_eliciting_threshold.map(VarInt::into_inner);
        config.requested_max_ack_delay = self.max_ack_delay.map(|delay| delay.min(MAX_ACK_DELAY));
        config.ack_reordering_threshold = self.reordering_threshold.map(VarInt::into_inner);
    }
}

impl fmt::Debug for AckFrequencyConfig {
    /// Shows quinn's names, and its defaults for what is not set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |value: Option<VarInt>, default| value.unwrap_or(VarInt::from_u32(default));
        f.debug_struct("AckFrequencyConfig")
            .field(
                "ack_eliciting_threshold",
                &or(self.ack_eliciting_threshold, 1),
            )
            .field("max_ack_delay", &self.max_ack_delay)
            .field("reordering_threshold", &or(self.reordering_threshold, 2))
            .finish()
    }
}

/// The longest delay that a peer can announce (RFC 9000 §18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis((1 << 14) - 1);
