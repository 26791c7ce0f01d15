//! The newest packets of one packet number space that carry nothing but an ACK.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::sent::Sent;

/// Remembers the newest packets that are not in flight, by packet number.
///
/// Nobody has to acknowledge them, and a peer can make us send any number of them, so the oldest
/// is forgotten when there are too many. An acknowledgement of one is still worth something while
/// it is new: its time gives a sample of the round trip, its ECN mark counts, and the ranges in
/// its ACK need no repeating (RFC 9000 §13.2.4).
#[derive(Debug)]
pub struct AckOnlyPackets<F> {
    /// In the order of their numbers.
    packets: VecDeque<(u64, Sent<F>)>,
}

impl<F> AckOnlyPackets<F> {
    /// Remembers nothing yet; allocates nothing.
    pub const fn new() -> Self {
        Self {
            packets: VecDeque::new(),
        }
    }

    /// Remembers a packet with a number larger than any before.
    #[inline]
    pub(crate) fn push(&mut self, number: u64, packet: Sent<F>) {
        if self.packets.len() == MAX_ACK_ONLY {
            self.packets.pop_front();
        }
        self.packets.push_back((number, packet));
    }

    /// Takes the newest packet with a number in `range` out, if one is remembered.
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

    /// Forgets the packets up to `largest`, which the peer has not got when it had that one;
    /// returns how many of them bore an ECN mark.
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

    /// The smallest number remembered.
    #[inline]
    pub fn oldest(&self) -> Option<u64> {
        self.packets.front().map(|(number, _)| *number)
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// True when none is remembered.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Forgets all and gives the memory back.
    pub(crate) fn clear(&mut self) {
        self.packets = VecDeque::new();
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.packets.capacity() * size_of::<(u64, Sent<F>)>()
    }

    /// A receiver that fills the memory again and again keeps it.
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

/// ACK-only packets remembered (limit K40). A peer that acknowledges does so within its delay of
/// 25 ms after the PING which asks for it, and then the newest are enough.
pub const MAX_ACK_ONLY: usize = 128;

/// Packets whose memory is kept while none is remembered.
const KEPT: usize = 8;

#[cfg(test)]
mod tests;
