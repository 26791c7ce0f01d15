//! Counters of a link.

use std::time::Duration;

use serde::Serialize;

/// Counters of a link. Bytes are UDP payload unless a field says otherwise.
///
/// `packets_in + duplicated` equals `packets_out` plus all drops plus the packets still inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LinkStats {
    /// Packets that were sent into the link.
    pub packets_in: u64,
    /// UDP payload of the packets that were sent into the link.
    pub bytes_in: u64,
    /// Packets that left the link at its end.
    pub packets_out: u64,
    /// UDP payload of the packets that left the link at its end.
    pub bytes_out: u64,
    /// Bytes that left with their IP and UDP headers, to compare with the rate.
    pub wire_bytes_out: u64,
    /// Packets that were dropped, by reason.
    pub dropped: Dropped,
    /// Packets that the queue marked CE.
    pub marked: u64,
    /// Packets whose ECN mark the field `ecn` changed.
    pub remarked: u64,
    /// Packets with a changed byte.
    pub corrupted: u64,
    /// Packets whose end was removed.
    pub truncated: u64,
    /// Packets with random bytes appended.
    pub extended: u64,
    /// Additional copies of packets, by the field `duplicate`.
    pub duplicated: u64,
    /// Packets that were delayed so that others overtake them.
    pub reordered: u64,
    /// Reports to senders about packets that were too large.
    pub answered: u64,
    /// The maximum of bytes in the queue so far, headers included.
    pub max_queue_bytes: u64,
    /// The maximum of packets in the queue so far.
    pub max_queue_packets: u64,
}

/// Dropped packets by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Dropped {
    /// Random loss, by the field `loss`.
    pub loss: u64,
    /// Loss in bursts, by the field `gilbert`.
    pub gilbert: u64,
    /// Listed packet numbers, by the fields `drop`, `first` and `mask`.
    pub listed: u64,
    /// Periodic loss, by the field `every`.
    pub every: u64,
    /// Packets during a blackhole.
    pub blackhole: u64,
    /// Packets larger than the MTU.
    pub mtu: u64,
    /// Packets for which the policer had no tokens.
    pub policer: u64,
    /// Packets that arrived at a full queue.
    pub queue_full: u64,
    /// Packets that CoDel dropped.
    pub aqm: u64,
    /// Packets beyond the limits of a link: [`Link::MAX_PACKETS`](crate::Link::MAX_PACKETS) or
    /// [`Link::MAX_BYTES`](crate::Link::MAX_BYTES).
    pub overflow: u64,
}

impl Dropped {
    /// Returns the sum of all drops.
    pub fn total(&self) -> u64 {
        self.loss
            + self.gilbert
            + self.listed
            + self.every
            + self.blackhole
            + self.mtu
            + self.policer
            + self.queue_full
            + self.aqm
            + self.overflow
    }

    fn add(&mut self, other: &Self) {
        self.loss += other.loss;
        self.gilbert += other.gilbert;
        self.listed += other.listed;
        self.every += other.every;
        self.blackhole += other.blackhole;
        self.mtu += other.mtu;
        self.policer += other.policer;
        self.queue_full += other.queue_full;
        self.aqm += other.aqm;
        self.overflow += other.overflow;
    }
}

impl LinkStats {
    /// Combines the counters with those of the next hop.
    pub(super) fn then(mut self, next: &Self) -> Self {
        self.packets_out = next.packets_out;
        self.bytes_out = next.bytes_out;
        self.wire_bytes_out = next.wire_bytes_out;
        self.dropped.add(&next.dropped);
        self.marked += next.marked;
        self.remarked += next.remarked;
        self.corrupted += next.corrupted;
        self.truncated += next.truncated;
        self.extended += next.extended;
        self.duplicated += next.duplicated;
        self.reordered += next.reordered;
        self.max_queue_bytes = self.max_queue_bytes.max(next.max_queue_bytes);
        self.max_queue_packets = self.max_queue_packets.max(next.max_queue_packets);
        self
    }
}

/// The state of the queues of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueState {
    /// Bytes in the queue, headers included, without the packet that is being transmitted.
    pub bytes: u64,
    /// Packets in the queue.
    pub packets: u64,
    /// The time that a packet entering at the time of the last call would wait.
    pub delay: Duration,
}
