//! The newest ACK-only packets of one packet number space.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::sent::Sent;

/// Records the newest packets that are not in flight, by packet number.
///
/// The peer need not acknowledge them, and it can make us send any number of them, so only the
/// newest are kept. The acknowledgement of a recent one is still useful: its time gives a sample of
/// the round trip, its ECN mark counts, and the ranges in its ACK need not be repeated (RFC 9000
/// §13.2.4).
#[derive(Debug)]
pub struct AckOnlyPackets<F> {
    /// Sorted by packet number.
    packets: VecDeque<(u64, Sent<F>)>,
}

impl<F> AckOnlyPackets<F> {
    /// Creates an empty list. Does not allocate.
    pub const fn new() -> Self {
        Self {
            packets: VecDeque::new(),
        }
    }

    /// Adds a packet, whose number must be larger than all earlier ones, and removes the oldest at
    /// the limit.
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

    /// Removes the packets up to `largest`, which the peer had not received when it received
    /// `largest`. Returns how many of them were sent with an ECN mark.
    pub fn remove_through(&mut self, largest: u64) -> u64 {
        let end = self
            .packets
            .partition_point(|(number, _)| *number <= largest);
        let removed = self.packets.drain(..end);
        let marked = removed.map(|(_, packet)| u64::from(packet.ecn_marked));
        let marked = marked.sum();
        if self.packets.is_empty() {
            self.free_memory();
        }
        marked
    }

    /// Returns the smallest packet number in the list.
    #[inline]
    pub fn oldest(&self) -> Option<u64> {
        self.packets.front().map(|(number, _)| *number)
    }

    /// Returns the number of packets in the list.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Returns true if the list has no packets.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Removes all packets and frees the memory.
    pub(crate) fn clear(&mut self) {
        self.packets = VecDeque::new();
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.packets.shrink_to_fit();
    }

    /// Returns the bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.packets.capacity() * size_of::<(u64, Sent<F>)>()
    }

    /// Frees memory beyond [`KEPT`] packets. Connections that mostly receive fill that much
    /// repeatedly.
    fn free_memory(&mut self) {
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

/// Maximum number of ACK-only packets in the list (limit K40). A PING makes the peer acknowledge
/// them within its delay of 25 ms, and then the newest are enough.
pub const MAX_ACK_ONLY: usize = 128;

/// Packets for which memory is kept while the list is empty.
const KEPT: usize = 8;

#[cfg(test)]
mod tests;
