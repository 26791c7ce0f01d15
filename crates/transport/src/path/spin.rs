//! The latency spin bit of a path. RFC 9000 §17.4.

use courser_base::Side;
use courser_wire::ConnectionId;
use courser_wire::packet::short::spin_bit;

use crate::rng::Rng;

/// The latency spin bit of our packets on one path.
#[derive(Clone, Debug)]
pub(crate) enum Spin {
    /// It is always 0.
    Off,
    /// It is random, on a connection that was chosen not to take part.
    Random,
    /// It shows the round-trip time to observers. Boxed, because the bit is off unless an operator wants it.
    On(Box<Shown>),
}

/// The spin bit of a path that shows its round-trip time.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// The value of the next packet.
    value: bool,
    /// One above the largest packet number received.
    expected: u64,
    /// The ID to which packets were sent last: each network path begins with 0.
    destination: ConnectionId,
}

impl Spin {
    /// Returns the state before the first packet.
    fn start() -> Self {
        Self::On(Box::new(Shown {
            value: false,
            expected: 0,
            destination: ConnectionId::EMPTY,
        }))
    }

    /// Returns the state of the first path of a connection, which takes part if `spins`. One connection in sixteen does
    /// not, so that observers cannot tell whether it is switched off.
    pub(crate) fn new(spins: bool, rng: &mut Rng) -> Self {
        match (spins, spins && rng.below(EXCLUDED) == 0) {
            (false, _) => Self::Off,
            (true, true) => Self::Random,
            (true, false) => Self::start(),
        }
    }

    /// Returns the state of a further path of the same connection.
    pub(super) fn of_new_path(&self) -> Self {
        match self {
            Self::On(_) => Self::start(),
            other => other.clone(),
        }
    }

    /// Processes the first byte of a packet of the peer.
    #[inline]
    pub(crate) fn on_received(&mut self, side: Side, first_byte: u8, number: u64) {
        if let Self::On(shown) = self
            && number >= shown.expected
        {
            shown.expected = number + 1;
            shown.value = spin_bit(first_byte) != side.is_client();
        }
    }

    /// Returns the bit of a packet to `destination`.
    #[inline]
    pub(crate) fn next(&mut self, to: ConnectionId, rng: &mut Rng) -> bool {
        match self {
            Self::Off => false,
            Self::Random => rng.below(2) == 0,
            Self::On(shown) => {
                if shown.destination != to {
                    (shown.value, shown.destination) = (false, to);
                }
                shown.value
            }
        }
    }
}

/// One connection in this many does not take part in the spin bit (RFC 9000 §17.4).
const EXCLUDED: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> ConnectionId {
        ConnectionId::new(&[byte; 8]).expect("eight bytes")
    }

    /// Returns a connection that takes part in the spin bit.
    fn spinning(rng: &mut Rng) -> Spin {
        loop {
            let spin = Spin::new(true, rng);
            if matches!(spin, Spin::On(_)) {
                return spin;
            }
        }
    }

    #[test]
    fn at_least_one_connection_in_sixteen_does_not_spin() {
        let mut rng = Rng::new([3; 32]);
        let excluded = (0..16_000)
            .filter(|_| matches!(Spin::new(true, &mut rng), Spin::Random))
            .count();
        assert!((850..1150).contains(&excluded), "{excluded} of 16000");
        let spin = Spin::new(false, &mut rng);
        assert!(matches!(spin, Spin::Off), "off by default");
    }

    #[test]
    fn a_server_reflects_and_a_client_inverts() {
        let mut rng = Rng::new([4; 32]);
        let (to_server, to_client) = (id(1), id(2));
        let mut client = spinning(&mut rng);
        let mut server = spinning(&mut rng);
        let mut seen = Vec::new();
        for round in 0..6 {
            let from_client = client.next(to_server, &mut rng);
            server.on_received(Side::Server, 0x40 | u8::from(from_client) << 5, round);
            let from_server = server.next(to_client, &mut rng);
            client.on_received(Side::Client, 0x40 | u8::from(from_server) << 5, round);
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
        let mut server = spinning(&mut rng);
        assert!(!server.next(id(1), &mut rng));
        server.on_received(Side::Server, 0x60, 7);
        assert!(server.next(id(1), &mut rng));
        server.on_received(Side::Server, 0x40, 6);
        assert!(server.next(id(1), &mut rng), "number 6 came late");
        assert!(!server.next(id(2), &mut rng), "another path begins with 0");
    }

    #[test]
    fn an_excluded_connection_sends_random_bits() {
        let mut rng = Rng::new([6; 32]);
        assert!((0..100).all(|_| !Spin::Off.next(id(1), &mut rng)));
        let ones = (0..1000)
            .filter(|_| Spin::Random.next(id(1), &mut rng))
            .count();
        assert!((400..600).contains(&ones), "{ones}");
    }
}
