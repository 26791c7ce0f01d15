//! Counters of a connection.

use std::time::Duration;

use courser_base::{Ecn, EcnCounts};
use courser_wire::Version;

pub use crate::recovery::stats::{Fallbacks, PathStats, WithheldFeatures};

use crate::datagram::DatagramStats;
use crate::frame_counts::{FrameCounts, FrameTally};
use crate::handshake::EarlyData;
use crate::traffic::UdpStats;

/// The counters that belong to no part of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) udp_sent: UdpStats,
    pub(super) udp_received: UdpStats,
    pub(super) packets_received: u64,
    pub(super) packets_dropped: u64,
    pub(super) early_packets_dropped: u64,
    pub(super) ack_eliciting_received: u64,
    pub(super) frames_received: FrameTally,
    pub(super) ecn_received: EcnCounts,
    pub(super) handshake_time: Option<Duration>,
}

impl Counters {
    /// Counts a received packet that was processed.
    #[inline]
    pub(super) fn on_packet(&mut self, ecn: Ecn, is_ack_eliciting: bool) {
        self.ecn_received.count(ecn);
        self.ack_eliciting_received += u64::from(is_ack_eliciting);
    }
}

/// Counters since the connection began, and the state of its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionStats {
    /// The state of the early data (0-RTT).
    pub early_data: EarlyData,
    /// Datagrams and bytes sent.
    pub udp_sent: UdpStats,
    /// Datagrams and bytes received.
    pub udp_received: UdpStats,
    /// Packets sent in all packet number spaces.
    pub packets_sent: u64,
    /// Packets received, opened and processed.
    pub packets_received: u64,
    /// 1-RTT packets of the peer that have not arrived: numbers that are missing below the largest one
    /// received. They were lost on the way, are still to come, or were never sent: senders may skip
    /// numbers (RFC 9000 §21.4), courser about one in 160, and fewer with a large window. A packet that
    /// arrives late is subtracted. Divided by the sum of this and the packets received, it is an upper
    /// bound for the loss rate of the path from the peer. Packets have no relation to the datagrams of RFC 9221 inside: a packet may have
    /// several or none.
    pub packets_missing: u64,
    /// 1-RTT packets that arrived after one with a larger number, because the path reorders or
    /// delays them.
    pub packets_late: u64,
    /// Packets dropped: no keys, not authentic, duplicate.
    pub packets_dropped: u64,
    /// 0-RTT packets that a server dropped, because it has refused the early data or because they
    /// exceed its limit; included in `packets_dropped`. A client that offers no early data sends none.
    pub early_packets_dropped: u64,
    /// Packets sent that were declared lost.
    pub packets_lost: u64,
    /// Packets declared lost that were acknowledged later.
    pub packets_spuriously_lost: u64,
    /// Ack-eliciting packets received and processed.
    pub ack_eliciting_received: u64,
    /// ACK frames sent in all packet number spaces.
    pub acks_sent: u64,
    /// ACK frames received, including those that acknowledged nothing new.
    pub acks_received: u64,
    /// Times the congestion window was cut.
    pub congestion_events: u64,
    /// Congestion events that were undone, because their packets were acknowledged later.
    pub congestion_events_undone: u64,
    /// Probe timeouts that expired (RFC 9002 §6.2).
    pub ptos: u64,
    /// Key updates, begun by either end.
    pub key_updates: u64,
    /// Stream bytes sent for the first time.
    pub data_sent: u64,
    /// Stream bytes sent again.
    pub data_retransmitted: u64,
    /// Stream bytes acknowledged. Bytes behind a gap count once the gap is closed.
    pub data_acked: u64,
    /// Stream bytes received for the first time.
    pub data_received: u64,
    /// Datagrams of RFC 9221.
    pub datagrams: DatagramStats,
    /// Frames sent, by type. Retransmissions count again.
    pub frames_sent: FrameCounts,
    /// Frames in packets that were opened and are no duplicates, by type.
    pub frames_received: FrameCounts,
    /// Packets sent with each ECN mark. The rest of `packets_sent` had none (RFC 9000 §13.4).
    pub ecn_sent: EcnCounts,
    /// Packets received with each ECN mark, and processed.
    pub ecn_received: EcnCounts,
    /// Optional features that were disabled on a path, because packets with them were lost while
    /// others arrived.
    pub fallbacks: Fallbacks,
    /// Number of changes of the path in use, including returns to a previous path.
    pub path_changes: u64,
    /// Packets received with a CE mark.
    pub ce_received: u64,
    /// Time from the first packet to the end of the handshake, once it is over.
    pub handshake_time: Option<Duration>,
    /// The version of QUIC: that of the first flight until another one is negotiated.
    pub version: Version,
    /// The path in use.
    pub path: PathStats,
}
