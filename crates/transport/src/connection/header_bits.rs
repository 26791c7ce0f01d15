//! Header bits without a meaning for the ends of a connection: the QUIC bit (RFC 9287) and the
//! latency spin bit (RFC 9000 §17.4).

use courser_base::Side;
use courser_wire::ConnectionId;
use courser_wire::packet::{clear_fixed_bit, short::spin_bit};

use crate::rng::Rng;

/// The state of both bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderBits {
    side: Side,
    /// True if we accept packets whose Fixed Bit is 0, and announce it.
    accepts_cleared: bool,
    /// True once the peer has announced that it accepts them.
    may_clear: bool,
    /// True while packets are built whose bit must be 1.
    is_kept: bool,
    spin: Spin,
}

/// The latency spin bit of our packets.
#[derive(Clone, Copy, Debug)]
enum Spin {
    /// It is always 0.
    Off,
    /// It is random, on a connection that was chosen not to take part.
    Random,
    /// It shows the round-trip time to observers.
    On {
        /// The value of the next packet.
        value: bool,
        /// One above the largest packet number received.
        expected: u64,
        /// The ID to which packets were sent last: each path begins with 0.
        destination: ConnectionId,
    },
}

impl HeaderBits {
    /// Creates the state of a connection. One in sixteen does not take part in the spin bit, so that
    /// observers cannot tell whether it is switched off.
    pub(super) fn new(side: Side, accepts_cleared: bool, spins: bool, rng: &mut Rng) -> Self {
        let spin = match (spins, spins && rng.below(EXCLUDED) == 0) {
            (false, _) => Spin::Off,
            (true, true) => Spin::Random,
            (true, false) => Spin::On {
                value: false,
                expected: 0,
                destination: ConnectionId::EMPTY,
            },
        };
        Self {
            side,
            accepts_cleared,
            may_clear: false,
            is_kept: false,
            spin,
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

    /// Processes the first byte of a 1-RTT packet of the peer. The packet with the largest number
    /// determines our next bits.
    #[inline]
    pub(super) fn on_received(&mut self, first_byte: u8, number: u64) {
        if let Spin::On {
            value, expected, ..
        } = &mut self.spin
            && number >= *expected
        {
            *expected = number + 1;
            *value = spin_bit(first_byte) != self.side.is_client();
        }
    }

    /// Returns the spin bit of a 1-RTT packet to `destination`.
    #[inline]
    pub(super) fn next_spin(&mut self, to: ConnectionId, rng: &mut Rng) -> bool {
        match &mut self.spin {
            Spin::Off => false,
            Spin::Random => rng.below(2) == 0,
            Spin::On {
                value, destination, ..
            } => {
                if *destination != to {
                    (*value, *destination) = (false, to);
                }
                *value
            }
        }
    }
}

/// One connection in this many does not take part in the spin bit (RFC 9000 §17.4).
const EXCLUDED: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const GREASED: [u8; 2] = [0x40, 0x00];

    fn id(byte: u8) -> ConnectionId {
        ConnectionId::new(&[byte; 8]).expect("eight bytes")
    }

    /// Returns a connection that takes part in the spin bit.
    fn spinning(side: Side, rng: &mut Rng) -> HeaderBits {
        loop {
            let bits = HeaderBits::new(side, false, true, rng);
            if matches!(bits.spin, Spin::On { .. }) {
                return bits;
            }
        }
    }

    #[test]
    fn at_least_one_connection_in_sixteen_does_not_spin() {
        let mut rng = Rng::new([3; 32]);
        let excluded = (0..16_000)
            .filter(|_| {
                let bits = HeaderBits::new(Side::Client, false, true, &mut rng);
                matches!(bits.spin, Spin::Random)
            })
            .count();
        assert!((850..1150).contains(&excluded), "{excluded} of 16000");
        let bits = HeaderBits::new(Side::Client, false, false, &mut rng);
        assert!(matches!(bits.spin, Spin::Off), "off by default");
    }

    #[test]
    fn a_server_reflects_and_a_client_inverts() {
        let mut rng = Rng::new([4; 32]);
        let (to_server, to_client) = (id(1), id(2));
        let mut client = spinning(Side::Client, &mut rng);
        let mut server = spinning(Side::Server, &mut rng);
        let mut seen = Vec::new();
        for round in 0..6 {
            let from_client = client.next_spin(to_server, &mut rng);
            server.on_received(0x40 | u8::from(from_client) << 5, round);
            let from_server = server.next_spin(to_client, &mut rng);
            client.on_received(0x40 | u8::from(from_server) << 5, round);
            seen.push((from_client, from_server));
        }
        let expected: Vec<_> = (0..6)
            .map(|round| (round % 2 == 1, round % 2 == 1))
            .collect();
        assert_eq!(seen, expected, "one edge in each round trip");
    }

    #[test]
    fn late_packets_and_new_paths_are_distinguished() {
        let mut rng = Rng::new([5; 32]);
        let mut server = spinning(Side::Server, &mut rng);
        assert!(!server.next_spin(id(1), &mut rng));
        server.on_received(0x60, 7);
        assert!(server.next_spin(id(1), &mut rng));
        server.on_received(0x40, 6);
        assert!(server.next_spin(id(1), &mut rng), "number 6 came late");
        assert!(
            !server.next_spin(id(2), &mut rng),
            "another path begins with 0"
        );
    }

    #[test]
    fn an_excluded_connection_sends_random_bits() {
        let mut rng = Rng::new([6; 32]);
        let mut bits = HeaderBits::new(Side::Client, false, false, &mut rng);
        assert!((0..100).all(|_| !bits.next_spin(id(1), &mut rng)));
        bits.spin = Spin::Random;
        let ones = (0..1000)
            .filter(|_| bits.next_spin(id(1), &mut rng))
            .count();
        assert!((400..600).contains(&ones), "{ones}");
    }

    #[test]
    fn the_quic_bit_is_cleared_only_if_both_ends_accept_that() {
        let mut rng = Rng::new([7; 32]);
        for (ours, peers) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut bits = HeaderBits::new(Side::Client, ours, false, &mut rng);
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
