//! Packet numbers that arrived: duplicates, ranges to acknowledge, ECN counts.

use courser_base::{Ecn, EcnCounts, RangeSet, Time};

/// Ranges kept for duplicate detection and acknowledgement (limit K03). Numbers below the lowest
/// are refused, so a path that reorders needs many: if 5 % of the packets are half a round trip
/// late, a fast path has hundreds of gaps. Each costs 16 bytes while it lasts.
pub const MAX_RANGES: usize = 1024;

/// The packet numbers that arrived in one packet number space. RFC 9000 §13.2.3.
#[derive(Debug, Default)]
pub struct Received {
    ranges: RangeSet,
    /// Numbers below this one are no longer stored. They might have been processed, and count as
    /// duplicates (RFC 9000 §12.3).
    floor: u64,
    largest_time: Time,
    ecn: EcnCounts,
    /// Packets recorded, and the smallest number among them.
    count: u64,
    first: u64,
    /// Packets that arrived after one with a larger number.
    late: u64,
    /// The smallest number that arrived since the last ACK was sent.
    smallest_unreported: Option<u64>,
}

/// The quality of the path from the peer, as far as packet numbers show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrivals {
    /// Numbers between the smallest and the largest received one of which no packet arrived.
    pub missing: u64,
    /// Packets that arrived after one with a larger number.
    pub late: u64,
}

impl std::ops::AddAssign for Arrivals {
    fn add_assign(&mut self, other: Self) {
        self.missing += other.missing;
        self.late += other.late;
    }
}

impl Received {
    /// Frees the spare capacity of the list of ranges.
    pub(super) fn shrink(&mut self) {
        self.ranges.shrink();
    }

    /// Returns the largest number that arrived.
    pub fn largest(&self) -> Option<u64> {
        self.ranges.max()
    }

    /// Returns the number expected next, for expanding truncated numbers (RFC 9000 §17.1).
    pub fn expected(&self) -> u64 {
        self.ranges.max().map_or(0, |largest| largest + 1)
    }

    /// Returns true when the packet was received before or is too old to decide.
    pub fn is_duplicate(&self, packet_number: u64) -> bool {
        packet_number < self.floor || self.ranges.contains(packet_number)
    }

    /// Records a packet that was opened and processed in full.
    pub fn insert(&mut self, packet_number: u64, now: Time, ecn: Ecn) {
        match self.ranges.max() {
            Some(largest) if packet_number < largest => {
                self.late += 1;
                self.first = self.first.min(packet_number);
            }
            largest => {
                self.largest_time = now;
                self.first = largest.map_or(packet_number, |_| self.first);
            }
        }
        self.count += 1;
        self.ranges.insert_one(packet_number);
        let lowest = self.smallest_unreported.unwrap_or(packet_number);
        self.smallest_unreported = Some(lowest.min(packet_number));
        self.ecn.count(ecn);
        if self.ranges.len() > MAX_RANGES
            && let Some(lowest) = self.ranges.pop_first()
        {
            self.floor = self.floor.max(lowest.end);
        }
    }

    /// Returns the packets that have not arrived, and those that arrived late. Ranges that were forgotten
    /// still count.
    pub fn arrivals(&self) -> Arrivals {
        let numbers = self.largest().map_or(0, |largest| largest + 1 - self.first);
        Arrivals {
            missing: numbers.saturating_sub(self.count),
            late: self.late,
        }
    }

    /// Forgets ranges up to `largest`, because the peer has received an ACK for them. The newest
    /// range stays, so that the largest number is always known (RFC 9000 §13.2.4).
    pub fn on_ack_acknowledged(&mut self, largest: u64) {
        let Some(newest) = self.ranges.last() else {
            return;
        };
        // Numbers in the newest range stay acknowledged without cost.
        let end = (largest + 1).min(newest.start);
        if self.ranges.len() > 1 {
            self.ranges.remove_below(end);
            self.floor = self.floor.max(end);
        }
    }

    /// Returns the smallest missing number from `start` on, below the largest that arrived.
    /// Forgotten numbers are not missing.
    pub fn first_missing(&self, start: u64) -> Option<u64> {
        let start = start.max(self.floor);
        let mut is_below_another = false;
        for range in self.ranges.iter().rev() {
            if range.start <= start {
                return is_below_another.then_some(start.max(range.end));
            }
            is_below_another = true;
        }
        is_below_another.then_some(start)
    }

    /// Returns the number of ranges for the next ACK frame: `usual`, or more when a packet arrived
    /// so late that the newest `usual` ranges do not contain it.
    pub fn ranges_to_report(&self, usual: usize) -> usize {
        let below = |lowest| {
            let newer = self.ranges.iter().rev();
            newer.take_while(|range| range.end > lowest).count()
        };
        if self.ranges.len() <= usual {
            return usual;
        }
        self.smallest_unreported.map_or(usual, below).max(usual)
    }

    /// Records that an ACK frame was sent.
    pub fn on_ack_sent(&mut self) {
        self.smallest_unreported = None;
    }

    /// Returns the ranges to put into an ACK frame.
    pub fn ranges(&self) -> &RangeSet {
        &self.ranges
    }

    /// Returns the time at which the largest number arrived, from which ACK Delay counts.
    pub fn largest_time(&self) -> Time {
        self.largest_time
    }

    /// Returns the ECN counts for ACK frames, or `None` while no packet was marked.
    pub fn ecn(&self) -> Option<&EcnCounts> {
        (!self.ecn.is_empty()).then_some(&self.ecn)
    }
}

#[cfg(test)]
mod tests;
