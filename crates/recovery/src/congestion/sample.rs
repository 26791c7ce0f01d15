//! What controllers are told: acknowledgements, losses, losses that were none.

use std::time::Duration;

use courser_base::Time;

use crate::delivery_rate::RateSample;
use crate::rtt::RttEstimator;

/// One acknowledgement, all packets that it newly acknowledged taken together.
///
/// Only packets that were in flight on the controller's path count.
#[derive(Clone, Copy, Debug)]
pub struct AckSample<'a> {
    /// When the ACK arrived.
    pub now: Time,
    /// Bytes newly acknowledged.
    pub acked_bytes: u64,
    /// The largest number newly acknowledged.
    pub largest_acked: u64,
    /// When that packet was sent.
    pub largest_acked_sent: Time,
    /// When the oldest of the packets newly acknowledged was sent.
    pub earliest_acked_sent: Time,
    /// The path's estimator, this ACK's sample included.
    pub rtt: &'a RttEstimator,
    /// The sample that this ACK gave, if it gave one.
    pub rtt_sample: Option<Duration>,
    /// The window was not used up when the packets left, for want of data or flow control
    /// credit. Waiting for the pacer is no such want. RFC 9002 §7.8.
    pub app_limited: bool,
    /// Bytes in flight before this ACK.
    pub bytes_in_flight_before: u64,
    /// Bytes in flight after this ACK and the losses that it showed.
    pub bytes_in_flight: u64,
    /// Bytes that this ACK showed to be lost.
    pub lost_bytes: u64,
    /// Bytes ever delivered on the path, this ACK included.
    pub delivered: u64,
    /// How fast the network has delivered the newest of these packets.
    pub rate: Option<RateSample>,
    /// How many of the packets left marked as ECN-capable.
    pub ecn_capable_packets: u64,
    /// CE marks that this ACK reported for the first time.
    pub ce_packets: u64,
}

/// A sign of congestion: packets lost, or marked on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossSample<'a> {
    /// When it was noticed.
    pub now: Time,
    /// Bytes lost; zero for marks.
    pub lost_bytes: u64,
    /// When the newest lost packet was sent; for marks, the largest newly acknowledged one.
    pub largest_lost_sent: Time,
    /// Persistent congestion is established, RFC 9002 §7.6.
    pub persistent: bool,
    /// The sign was a raised CE count.
    pub is_ecn: bool,
    /// Bytes in flight without the lost ones.
    pub bytes_in_flight: u64,
    /// The lost packets in the order of their numbers; none for marks.
    pub packets: &'a [LostPacket],
}

/// A packet that counts as lost, and what the path was like when it left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostPacket {
    /// Its number.
    pub number: u64,
    /// Its size.
    pub bytes: u64,
    /// When it was sent.
    pub sent: Time,
    /// Bytes in flight when it had just been sent, itself included.
    pub tx_in_flight: u64,
    /// Bytes lost on the path since it was sent, itself included.
    pub lost_since_sent: u64,
    /// It was sent while the application had less to send than the window allowed.
    pub is_app_limited: bool,
}

/// A packet that counted as lost has been acknowledged: it was only late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpuriousLoss {
    /// When the acknowledgement arrived.
    pub now: Time,
    /// Its size.
    pub bytes: u64,
    /// When it was sent.
    pub sent: Time,
    /// When it was declared lost.
    pub lost_at: Time,
}
