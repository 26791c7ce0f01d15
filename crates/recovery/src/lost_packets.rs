//! The packets that were declared lost a short while ago, in case they were only late.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

use courser_base::Time;

/// A packet that was declared lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lost {
    /// Its number.
    pub number: u64,
    /// When it was sent.
    pub sent: Time,
    /// When it was declared lost.
    pub lost_at: Time,
    /// Its size in bytes.
    pub size: u16,
    /// The path it was sent on.
    pub path: u32,
}

/// Remembers lost packets of one packet number space for some round trips. An acknowledgement of
/// one shows that the loss was none: the packet was overtaken by others.
#[derive(Debug, Default)]
pub struct LostPackets {
    /// In the order of their numbers.
    packets: VecDeque<Lost>,
}

impl LostPackets {
    /// Remembers nothing yet; allocates nothing.
    pub const fn new() -> Self {
        Self {
            packets: VecDeque::new(),
        }
    }

    /// True while nothing is remembered, on most paths most of the time.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Remembers a packet that was just declared lost. The oldest are forgotten when there are
    /// too many.
    pub fn push(&mut self, lost: Lost) {
        // Losses are found in ascending order; only the time threshold may find an older one.
        let at = self
            .packets
            .iter()
            .rposition(|packet| packet.number < lost.number)
            .map_or(0, |before| before + 1);
        self.packets.insert(at, lost);
        if self.packets.len() > MAX_REMEMBERED {
            self.packets.pop_front();
        }
    }

    /// Takes out what is in one of the ranges of an ACK, which come newest first.
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

    /// Forgets what was declared lost longer than `keep` ago.
    pub fn forget(&mut self, now: Time, keep: Duration) {
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

/// Enough for several round trips with a few per cent of loss on a fast path.
const MAX_REMEMBERED: usize = 1024;

#[cfg(test)]
mod tests;
