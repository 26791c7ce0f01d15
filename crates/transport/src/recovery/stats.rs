//! Counters of loss recovery, and the state of a path for users.

use std::time::Duration;

use courser_base::{EcnCounts, Rate};

/// State of the path in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathStats {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Latest sample.
    pub latest_rtt: Duration,
    /// Lowest sample.
    pub min_rtt: Duration,
    /// Congestion window in bytes.
    pub congestion_window: u64,
    /// Bytes sent and neither acknowledged nor lost.
    pub bytes_in_flight: u64,
    /// UDP payload of full datagrams.
    pub mtu: u16,
    /// Slow-start threshold in bytes, once there is one.
    pub ssthresh: Option<u64>,
    /// The rate at which the congestion controller wants to send, if it has one.
    pub pacing_rate: Option<Rate>,
    /// The rate at which the path delivered the bytes of the latest sample; `None` until there is
    /// one. draft-ietf-ccwg-bbr §4.1.
    pub delivery_rate: Option<Rate>,
    /// True if there was too little to send for the latest sample to show what the path can
    /// deliver.
    pub is_delivery_rate_app_limited: bool,
    /// An estimate of the bandwidth of the path: the highest delivery rate of the last 10 to 20
    /// round trips. Samples that were limited by the application count only if they exceed it.
    /// `None` until there is a sample.
    pub bandwidth: Option<Rate>,
    /// The congestion controller's name.
    pub controller: &'static str,
}

/// Counters of loss recovery since the connection began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecoveryStats {
    /// Packets sent.
    pub(crate) packets_sent: u64,
    /// Packets declared lost.
    pub(crate) packets_lost: u64,
    /// Lost packets that were acknowledged later.
    pub(crate) packets_spuriously_lost: u64,
    /// ACK frames received.
    pub(crate) acks_received: u64,
    /// Reductions of the congestion window.
    pub(crate) congestion_events: u64,
    /// Reductions that were taken back because nothing had been lost.
    pub(crate) congestion_events_undone: u64,
    /// Probe timeouts.
    pub(crate) ptos: u64,
    /// Packets sent with each mark.
    pub(crate) ecn_sent: EcnCounts,
}
