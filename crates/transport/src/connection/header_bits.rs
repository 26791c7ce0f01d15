//! The QUIC bit of packet headers, which may have any value. RFC 9287.

use courser_wire::packet::clear_fixed_bit;

use crate::rng::Rng;

/// The state of the bit.
#[derive(Clone, Debug)]
pub(super) struct HeaderBits {
    /// True if we accept packets whose Fixed Bit is 0, and announce it.
    accepts_cleared: bool,
    /// True once the peer has announced that it accepts them.
    may_clear: bool,
    /// True while packets are built whose bit must be 1.
    is_kept: bool,
}

impl HeaderBits {
    /// Creates the state of a connection.
    pub(super) const fn new(accepts_cleared: bool) -> Self {
        Self {
            accepts_cleared,
            may_clear: false,
            is_kept: false,
        }
    }

    /// Returns true if packets whose Fixed Bit is 0 are read.
    pub(super) fn accepts_cleared(&self) -> bool {
        self.accepts_cleared
    }

    /// Applies the peer's parameter grease_quic_bit. An end that does not accept cleared bits clears
    /// none.
    pub(super) fn on_peer_parameter(&mut self, grease_quic_bit: bool) {
        self.may_clear = grease_quic_bit && self.accepts_cleared;
    }

    /// Returns true if both ends accept a cleared bit.
    #[inline]
    pub(super) fn may_clear(&self) -> bool {
        self.may_clear
    }

    /// Sets whether the next packets may have a cleared bit. The path may drop them even if the peer
    /// accepts them.
    #[inline]
    pub(super) fn set_clearing(&mut self, is_allowed: bool) {
        self.is_kept = !is_allowed;
    }

    /// Clears the Fixed Bit of half of the packets, at random, if the peer accepts that, and returns true
    /// if it did. Called before the packet is sealed.
    #[inline]
    pub(super) fn grease(&self, first_byte: &mut u8, rng: &mut Rng) -> bool {
        let clears = self.may_clear && !self.is_kept && rng.below(2) == 0;
        if clears {
            clear_fixed_bit(first_byte);
        }
        clears
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREASED: [u8; 2] = [0x40, 0x00];

    #[test]
    fn the_quic_bit_is_cleared_only_if_both_ends_accept_that() {
        let mut rng = Rng::new([7; 32]);
        for (ours, peers) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut bits = HeaderBits::new(ours);
            let mut before = 0x40;
            bits.grease(&mut before, &mut rng);
            assert_eq!(before, 0x40, "the parameter is not known yet");
            bits.on_peer_parameter(peers);
            let cleared = (0..1000)
                .filter(|_| {
                    let mut first = GREASED[0];
                    let is_cleared = bits.grease(&mut first, &mut rng);
                    assert_eq!(is_cleared, first == GREASED[1]);
                    is_cleared
                })
                .count();
            let is_expected = match ours && peers {
                true => (400..600).contains(&cleared),
                false => cleared == 0,
            };
            assert!(is_expected, "{ours} {peers}: {cleared}");
            bits.set_clearing(false);
            assert!(
                (0..100).all(|_| !bits.grease(&mut before, &mut rng)),
                "kept"
            );
        }
    }
}
