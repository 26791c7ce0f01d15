//! Counters of loss recovery, and the state of a path for statistics.

use std::ops::AddAssign;
use std::time::Duration;

use courser_base::{EcnCounts, Rate};
use courser_telemetry::PathFeature;

/// The state of the path in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathStats {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Latest sample of the round-trip time.
    pub latest_rtt: Duration,
    /// The smoothed mean deviation of the samples of the round-trip time: `rttvar` of RFC 9002 §5.3.
    /// Half of the first sample until there are more.
    pub rtt_variance: Duration,
    /// Lowest sample of the round-trip time.
    pub min_rtt: Duration,
    /// Congestion window in bytes.
    pub congestion_window: u64,
    /// Bytes sent and neither acknowledged nor lost.
    pub bytes_in_flight: u64,
    /// UDP payload of full datagrams.
    pub mtu: u16,
    /// Slow-start threshold in bytes, once there is one.
    pub ssthresh: Option<u64>,
    /// The rate of sending that the congestion controller sets, if it sets one.
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
    /// The optional features of packets that are not used, because the path drops such packets.
    pub withheld: WithheldFeatures,
}

/// Optional features of packets that are not used on a path, because packets with them were lost
/// while others arrived. They are tried again from time to time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WithheldFeatures {
    /// Batches, of which segmentation offload (GSO) makes datagrams: each datagram is sent by a
    /// system call of its own.
    pub batches: bool,
    /// ECN marks.
    pub ecn: bool,
    /// The cleared QUIC bit (RFC 9287).
    pub quic_bit: bool,
}

impl WithheldFeatures {
    /// Returns true if a feature is not used.
    pub(crate) fn contains(self, feature: PathFeature) -> bool {
        match feature {
            PathFeature::Batches => self.batches,
            PathFeature::EcnMarks => self.ecn,
            PathFeature::ClearedQuicBit => self.quic_bit,
        }
    }
}

/// How often each optional feature of packets was disabled on a path, because packets with it were lost while
/// others arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fallbacks {
    /// Batches, of which segmentation offload (GSO) makes datagrams.
    pub batches: u64,
    /// ECN marks.
    pub ecn: u64,
    /// The cleared QUIC bit (RFC 9287).
    pub quic_bit: u64,
}

impl Fallbacks {
    /// Counts a feature that is disabled.
    pub(super) fn count(&mut self, feature: PathFeature) {
        *match feature {
            PathFeature::Batches => &mut self.batches,
            PathFeature::EcnMarks => &mut self.ecn,
            PathFeature::ClearedQuicBit => &mut self.quic_bit,
        } += 1;
    }
}

impl AddAssign for Fallbacks {
    fn add_assign(&mut self, other: Self) {
        let Self {
            batches,
            ecn,
            quic_bit,
        } = other;
        self.batches += batches;
        self.ecn += ecn;
        self.quic_bit += quic_bit;
    }
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
    /// Reductions that were undone because nothing had been lost.
    pub(crate) congestion_events_undone: u64,
    /// Probe timeouts.
    pub(crate) ptos: u64,
    /// Packets sent with each mark.
    pub(crate) ecn_sent: EcnCounts,
    /// How often optional features were disabled.
    pub(crate) fallbacks: Fallbacks,
}

impl AddAssign for RecoveryStats {
    fn add_assign(&mut self, other: Self) {
        let Self {
            packets_sent,
            packets_lost,
            packets_spuriously_lost,
            acks_received,
            congestion_events,
            congestion_events_undone,
            ptos,
            ecn_sent,
            fallbacks,
        } = other;
        self.packets_sent += packets_sent;
        self.packets_lost += packets_lost;
        self.packets_spuriously_lost += packets_spuriously_lost;
        self.acks_received += acks_received;
        self.congestion_events += congestion_events;
        self.congestion_events_undone += congestion_events_undone;
        self.ptos += ptos;
        self.ecn_sent.ect0 += ecn_sent.ect0;
        self.ecn_sent.ect1 += ecn_sent.ect1;
        self.ecn_sent.ce += ecn_sent.ce;
        self.fallbacks += fallbacks;
    }
}
