//! Packets declared lost recently, which may only be late.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

use courser_base::Time;

/// A packet that was declared lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lost {
    /// The packet number, in its packet number space.
    pub number: u64,
    /// The time at which the packet was sent.
    pub sent: Time,
    /// The time at which the packet was declared lost.
    pub lost_at: Time,
    /// The size in bytes.
    pub size: u16,
    /// The path on which the packet was sent.
    pub path: u32,
    /// True if the packet was sent in a batch of datagrams and was not the first of it.
    pub follows_in_batch: bool,
}

/// Keeps lost packets of one packet number space for some round trips.
///
/// The acknowledgement of such a packet shows that the loss was spurious: other packets have
/// overtaken it.
#[derive(Debug, Default)]
pub struct LostPackets {
    /// Sorted by packet number.
    packets: VecDeque<Lost>,
}

impl LostPackets {
    /// Creates an empty list. Does not allocate.
    pub const fn new() -> Self {
        Self {
            packets: VecDeque::new(),
        }
    }

    /// Returns true if the list has no packets, which is the usual case.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Adds a packet that was declared lost. Removes the oldest at the limit.
    pub fn push(&mut self, lost: Lost) {
        // Losses are detected in ascending order; only the time threshold may detect an older one.
        let at = self
            .packets
            .iter()
            .rposition(|packet| packet.number < lost.number)
            .map_or(0, |before| before + 1);
        self.packets.insert(at, lost);
        if self.packets.len() > MAX_LOST_PACKETS {
            self.packets.pop_front();
        }
    }

    /// Removes the packets in the ranges of an ACK, which are sorted newest first, and passes them
    /// to `each`.
    pub fn take_acked(
        &mut self,
        ranges: impl Iterator<Item = RangeInclusive<u64>>,
        mut each: impl FnMut(Lost),
    ) {
        for range in ranges {
            let Some(oldest) = self.packets.front() else {
                return;
            };
            if *range.end() < oldest.number {
                return;
            }
            let start = self
                .packets
                .partition_point(|packet| packet.number < *range.start());
            let end = self
                .packets
                .partition_point(|packet| packet.number <= *range.end());
            self.packets.drain(start..end).for_each(&mut each);
        }
    }

    /// Removes the packets that were declared lost longer than `keep` ago.
    pub fn remove_expired(&mut self, now: Time, keep: Duration) {
        while let Some(oldest) = self.packets.front()
            && oldest.lost_at + keep < now
        {
            self.packets.pop_front();
        }
        if self.packets.is_empty() {
            self.packets.shrink_to(0);
        }
    }
}

/// Maximum number of packets in the list: enough for several round trips with a few per cent of
/// loss on a fast path.
const MAX_LOST_PACKETS: usize = 1024;

#[cfg(test)]
mod tests;
