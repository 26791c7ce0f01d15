//! The inputs of controllers: acknowledgements, losses and spurious losses.

use std::time::Duration;

use courser_base::Time;

use crate::delivery_rate::RateSample;
use crate::rtt::RttEstimator;

/// One acknowledgement with all the packets that it newly acknowledged.
///
/// Only packets that were in flight on the controller's path count.
#[derive(Clone, Copy, Debug)]
pub struct AckSample<'a> {
    /// The time at which the ACK arrived.
    pub now: Time,
    /// Bytes that this ACK newly acknowledges, on the controller's path.
    pub acked_bytes: u64,
    /// The largest number newly acknowledged.
    pub largest_acked: u64,
    /// The time at which the packet with the largest number was sent.
    pub largest_acked_sent: Time,
    /// The time at which the oldest newly acknowledged packet was sent.
    pub earliest_acked_sent: Time,
    /// The estimator of the path, which includes the sample of this ACK.
    pub rtt: &'a RttEstimator,
    /// The round-trip time sample of this ACK, if it gave one.
    pub rtt_sample: Option<Duration>,
    /// True if the packets did not fill the window because there was too little data or flow
    /// control credit. Waiting for the pacer does not count. RFC 9002 §7.8.
    pub app_limited: bool,
    /// Bytes in flight before this ACK.
    pub bytes_in_flight_before: u64,
    /// Bytes in flight after this ACK and the losses that it revealed.
    pub bytes_in_flight: u64,
    /// Bytes declared lost by this ACK.
    pub lost_bytes: u64,
    /// Bytes delivered on the path so far, those of this ACK included.
    pub delivered: u64,
    /// The delivery rate of the newest newly acknowledged packet, if it gave a sample.
    pub rate: Option<RateSample>,
    /// The number of newly acknowledged packets that were sent with an ECT codepoint.
    pub ecn_capable_packets: u64,
    /// CE marks that this ACK reported for the first time.
    pub ce_packets: u64,
}

/// A congestion signal: packets that were lost or marked by the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossSample<'a> {
    /// The time at which the loss or the marks were detected.
    pub now: Time,
    /// Bytes lost; zero for marks.
    pub lost_bytes: u64,
    /// The time at which the newest lost packet was sent; for marks, the packet with the largest
    /// newly acknowledged number.
    pub largest_lost_sent: Time,
    /// True if persistent congestion is established, RFC 9002 §7.6.
    pub persistent: bool,
    /// True if the signal was a raised CE count.
    pub is_ecn: bool,
    /// Bytes in flight, the lost ones excluded.
    pub bytes_in_flight: u64,
    /// The lost packets in ascending order of their numbers; none for marks.
    pub packets: &'a [LostPacket],
}

/// A lost packet, and the state of the path when it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostPacket {
    /// The packet number, in its packet number space.
    pub number: u64,
    /// The size in bytes.
    pub bytes: u64,
    /// The time at which the packet was sent.
    pub sent: Time,
    /// Bytes in flight after the packet was sent, its own included.
    pub tx_in_flight: u64,
    /// Bytes lost on the path since the packet was sent, its own included.
    pub lost_since_sent: u64,
    /// True if the application had less to send than the window allowed when the packet was sent.
    pub is_app_limited: bool,
}

/// A packet that was late: it was declared lost and then acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpuriousLoss {
    /// The time at which the acknowledgement arrived.
    pub now: Time,
    /// The size of the packet in bytes.
    pub bytes: u64,
    /// The time at which the packet was sent.
    pub sent: Time,
    /// The time at which the packet was declared lost.
    pub lost_at: Time,
}
