//! The newest ACK-only packets of one packet number space.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::sent::Sent;

/// Records the newest packets that are not in flight, by packet number.
///
/// The peer need not acknowledge them, and it can make us send any number of them, so the oldest
/// record is dropped when there are too many. The acknowledgement of a recent one is still useful:
/// its time gives a sample of the round trip, its ECN mark counts, and the ranges in its ACK need
/// not be repeated (RFC 9000 §13.2.4).
#[derive(Debug)]
pub struct AckOnlyPackets<F> {
    /// Sorted by packet number.
    packets: VecDeque<(u64, Sent<F>)>,
}

impl<F> AckOnlyPackets<F> {
    /// Creates an empty record. Does not allocate.
    pub const fn new() -> Self {
        Self {
            packets: VecDeque::new(),
        }
    }

    /// Records a packet. Its number is larger than that of any packet before.
    #[inline]
    pub(crate) fn push(&mut self, number: u64, packet: Sent<F>) {
        if self.packets.len() == MAX_ACK_ONLY {
            self.packets.pop_front();
        }
        self.packets.push_back((number, packet));
    }

    /// Removes and returns the newest packet with a number in `range`.
    #[inline]
    pub fn take_newest(&mut self, range: &RangeInclusive<u64>) -> Option<(u64, Sent<F>)> {
        let end = self
            .packets
            .partition_point(|(number, _)| number <= range.end());
        let newest = end.checked_sub(1)?;
        if self.packets[newest].0 < *range.start() {
            return None;
        }
        self.packets.remove(newest)
    }

    /// Drops the packets up to `largest`: the peer had not received them when it received that one.
    /// Returns how many of them were sent with an ECN mark.
    pub fn forget_through(&mut self, largest: u64) -> u64 {
        let end = self
            .packets
            .partition_point(|(number, _)| *number <= largest);
        let forgotten = self.packets.drain(..end);
        let marked = forgotten.map(|(_, packet)| u64::from(packet.ecn_marked));
        let marked = marked.sum();
        if self.packets.is_empty() {
            self.give_back();
        }
        marked
    }

    /// Returns the smallest recorded number.
    #[inline]
    pub fn oldest(&self) -> Option<u64> {
        self.packets.front().map(|(number, _)| *number)
    }

    /// Returns the number of recorded packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Returns true if no packet is recorded.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Drops all packets and frees the memory.
    pub(crate) fn clear(&mut self) {
        self.packets = VecDeque::new();
    }

    /// Frees the room for more packets.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.packets.shrink_to_fit();
    }

    /// Returns the bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.packets.capacity() * size_of::<(u64, Sent<F>)>()
    }

    /// Frees memory beyond a minimum, which receivers that fill it repeatedly keep.
    fn give_back(&mut self) {
        if self.packets.capacity() > KEPT {
            self.packets.shrink_to(KEPT);
        }
    }
}

impl<F> Default for AckOnlyPackets<F> {
    fn default() -> Self {
        Self::new()
    }
}

/// The most ACK-only packets recorded (limit K40). A PING makes the peer acknowledge them within
/// its delay of 25 ms, and then the newest are enough.
pub const MAX_ACK_ONLY: usize = 128;

/// Packets whose memory is kept while none is recorded.
const KEPT: usize = 8;

#[cfg(test)]
mod tests;
