//! What a link has done so far.

use std::time::Duration;

use serde::Serialize;

/// What a link has done so far. Bytes are UDP payload.
///
/// `packets_in + duplicated` is `packets_out` plus all drops plus what is still inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LinkStats {
    /// Packets that entered.
    pub packets_in: u64,
    /// Bytes that entered.
    pub bytes_in: u64,
    /// Packets that left.
    pub packets_out: u64,
    /// Bytes that left.
    pub bytes_out: u64,
    /// Bytes that left, with headers of IP and UDP: compare these with the rate.
    pub wire_bytes_out: u64,
    /// Packets that did not get through.
    pub dropped: Dropped,
    /// Packets that the queue marked CE.
    pub marked: u64,
    /// Packets whose mark was changed by the field `ecn`.
    pub remarked: u64,
    /// Packets with a byte changed.
    pub corrupted: u64,
    /// Packets that lost their end.
    pub truncated: u64,
    /// Packets that got bytes behind their end.
    pub extended: u64,
    /// Copies that were made.
    pub duplicated: u64,
    /// Packets that were held back for others to pass.
    pub reordered: u64,
    /// Senders that were told that a packet was too large.
    pub answered: u64,
    /// Most bytes that waited at once, headers included.
    pub max_queue_bytes: u64,
    /// Most packets that waited at once.
    pub max_queue_packets: u64,
}

/// Why packets did not get through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Dropped {
    /// By chance, `loss`.
    pub loss: u64,
    /// In a burst, `gilbert`.
    pub gilbert: u64,
    /// By number, `drop`, `first` and `mask`.
    pub listed: u64,
    /// By number, `every`.
    pub every: u64,
    /// In a blackhole.
    pub blackhole: u64,
    /// Larger than the MTU.
    pub mtu: u64,
    /// No tokens in the policer.
    pub policer: u64,
    /// The queue was full.
    pub queue_full: u64,
    /// CoDel.
    pub aqm: u64,
    /// More inside than a link keeps: [`Link::MAX_PACKETS`](super::Link::MAX_PACKETS) or
    /// [`Link::MAX_BYTES`](super::Link::MAX_BYTES).
    pub overflow: u64,
}

impl Dropped {
    /// All drops.
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
    /// Goes on with what the stretch behind this one did.
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

/// What waits in the queues of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueState {
    /// Bytes that wait, headers included; not those of the packet that is leaving.
    pub bytes: u64,
    /// Packets that wait.
    pub packets: u64,
    /// How long a packet would wait that entered at the time of the last call.
    pub delay: Duration,
}
