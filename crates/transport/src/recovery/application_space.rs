//! The sending half of the packet number space of 1-RTT packets, and the state that only this space has.

use std::ops::RangeInclusive;
use std::time::Duration;

use courser_base::Time;
use courser_recovery::{Lost, LostPackets, SentPackets};

use super::numbers::Numbers;
use super::sent_space::SentSpace;
use crate::config::TransportConfig;
use crate::rng::Rng;

/// The sent 1-RTT packets of one path ID.Without multipath there is one, whose packets may be sent
/// on several network paths.
#[derive(Debug)]
pub(super) struct ApplicationSpace {
    pub(super) space: SentSpace,
    numbers: Numbers,
    /// Lost packets that may still be acknowledged, if they were only late.
    lately_lost: LostPackets,
    /// The number of the last packet that a probe has repeated.
    pub(super) repeated: Option<u64>,
}

impl ApplicationSpace {
    /// Creates a space in which nothing was sent.
    pub(super) fn new(config: &TransportConfig, first_number: u64, rng: &mut Rng) -> Self {
        Self {
            space: SentSpace::new(config, first_number),
            numbers: Numbers::new(first_number, rng),
            lately_lost: LostPackets::new(),
            repeated: None,
        }
    }

    /// Returns the number of the next packet, after a number that is skipped.
    #[inline]
    pub(super) fn next_number(&self) -> u64 {
        self.numbers.next(self.space.next_number)
    }

    /// Chooses another number to skip, if packet `sent` has passed the last one. `window` returns the
    /// congestion window in packets.
    #[inline]
    pub(super) fn draw_skip(&mut self, sent: u64, window: impl FnOnce() -> u64, rng: &mut Rng) {
        if self.numbers.is_past_skip(sent) {
            self.numbers.choose_skip(sent, window(), rng);
        }
    }

    /// Adds the record of a packet that was declared lost.
    pub(super) fn on_lost(&mut self, lost: Lost) {
        self.lately_lost.push(lost);
    }

    /// Returns true while there are records of lost packets.
    #[inline]
    pub(super) fn remembers_losses(&self) -> bool {
        !self.lately_lost.is_empty()
    }

    /// Removes and returns the lost packets that are acknowledged now. Drops the records
    /// of packets that were lost longer than `memory` ago.
    pub(super) fn take_late(
        &mut self,
        now: Time,
        acknowledged: impl Iterator<Item = RangeInclusive<u64>>,
        memory: Duration,
    ) -> Vec<Lost> {
        let mut late = Vec::new();
        self.lately_lost
            .take_acked(acknowledged, |lost| late.push(lost));
        self.lately_lost.remove_expired(now, memory);
        late
    }

    /// Frees the records of packets.
    pub(super) fn free(&mut self) {
        self.space.sent = SentPackets::new();
        self.lately_lost = LostPackets::new();
    }

    /// Returns the number that is skipped next.
    #[cfg(test)]
    pub(super) fn skip_at(&self) -> u64 {
        self.numbers.skip_at()
    }
}
