//! Numbers of 1-RTT packets, some of which are skipped. RFC 9000 §21.4.

use crate::rng::Rng;
use crate::space::SpaceId;

/// Chooses the packet numbers that are skipped, to detect peers that acknowledge packets which
/// they never received (limit K21).
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    skip_at: u64,
}

impl Numbers {
    /// Draws the first number to skip, after the number of the first packet.
    pub(super) fn new(first: u64, rng: &mut Rng) -> Self {
        Self {
            skip_at: first + 5 + rng.below(20),
        }
    }

    /// Returns the number of the next packet. `next` is the first unused number.
    #[inline]
    pub(super) fn next(self, next: u64) -> u64 {
        next + u64::from(next == self.skip_at)
    }

    /// Returns true if `sent` is larger than the number to skip.
    #[inline]
    pub(super) fn is_past_skip(self, sent: u64) -> bool {
        sent > self.skip_at
    }

    /// Draws the number that is skipped next, after `sent`. `window` is the congestion window in
    /// packets: a number is skipped about once in a window.
    #[cold]
    pub(super) fn choose_skip(&mut self, sent: u64, window: u64, rng: &mut Rng) {
        let window = window.clamp(MIN_SKIP_DISTANCE, MAX_SKIP_DISTANCE);
        self.skip_at = sent + 1 + window / 2 + rng.below(window * 3 / 2);
    }

    /// Returns the number that is skipped next.
    #[cfg(test)]
    pub(super) fn skip_at(self) -> u64 {
        self.skip_at
    }
}

/// The number of the first packet in each packet number space: 0 or random.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstNumbers {
    initial: u32,
    handshake: u32,
    application: u32,
}

impl FirstNumbers {
    /// Draws independent numbers for the spaces, because observers can read those of Initial packets.
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let mut draw = || u32::try_from(rng.below(FIRST_NUMBERS)).expect("below 2^29");
        Self {
            initial: draw(),
            handshake: draw(),
            application: draw(),
        }
    }

    /// Returns the number of the first packet of a space.
    pub(super) fn of(self, id: SpaceId) -> u64 {
        u64::from(match id {
            SpaceId::Initial => self.initial,
            SpaceId::Handshake => self.handshake,
            SpaceId::Application => self.application,
        })
    }
}

/// Random first numbers are below this limit. A receiver decodes the four bytes of a first number correctly up
/// to 2^31 (RFC 9000 §A.3), and an ACK frame holds numbers below 2^30 in four bytes.
const FIRST_NUMBERS: u64 = 1 << 29;

/// The smallest window for which numbers are skipped. A peer that acknowledges packets which have not arrived is
/// found within twice as many (RFC 9000 §21.4), in which a window grows by 300 kB at most. Peers that estimate loss
/// by missing numbers see less than one per cent.
const MIN_SKIP_DISTANCE: u64 = 128;

/// Maximum window for the choice of the number to skip, so that numbers are skipped even with huge windows.
const MAX_SKIP_DISTANCE: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_skipped_and_next_one_is_chosen() {
        let mut rng = Rng::new([1; 32]);
        let mut numbers = Numbers::new(0, &mut rng);
        let skipped = numbers.skip_at();
        assert!((5..25).contains(&skipped));
        assert_eq!(numbers.next(skipped - 1), skipped - 1);
        assert_eq!(numbers.next(skipped), skipped + 1);
        assert!(numbers.is_past_skip(skipped + 1));
        numbers.choose_skip(skipped + 1, 10, &mut rng);
        let next = skipped + 2 + MIN_SKIP_DISTANCE / 2;
        assert!((next..next + MIN_SKIP_DISTANCE * 3 / 2).contains(&numbers.skip_at()));
    }

    #[test]
    fn random_first_numbers_differ_and_are_below_the_limit() {
        let mut rng = Rng::new([3; 32]);
        let mut largest = 0;
        for _ in 0..100 {
            let first = FirstNumbers::draw(&mut rng);
            let [a, b, c] = SpaceId::ALL.map(|id| first.of(id));
            assert!(a != b && b != c && a != c);
            largest = largest.max(a).max(b).max(c);
        }
        assert!((FIRST_NUMBERS / 2..FIRST_NUMBERS).contains(&largest));
        let first = FirstNumbers::draw(&mut rng).of(SpaceId::Application);
        let skipped = Numbers::new(first, &mut rng).skip_at();
        assert!((first + 5..first + 25).contains(&skipped));
    }

    #[test]
    fn huge_window_does_not_delay_next_skip() {
        let mut rng = Rng::new([2; 32]);
        let mut numbers = Numbers::new(0, &mut rng);
        numbers.choose_skip(100, u64::MAX / 4, &mut rng);
        assert!(numbers.skip_at() <= 101 + MAX_SKIP_DISTANCE * 2);
    }
}
