//! Random bytes of every length.

use courser_base::Time;

use crate::attack::{Attack, Expect, Pace, Plan, Victim};
use crate::attacker::Attacker;

pub(super) const PLAN: Plan = Plan {
    name: "garbage",
    labels: &["A01", "A11"],
    summary: "datagrams of random bytes, some with the first byte of a QUIC packet",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(Garbage),
};

struct Garbage;

/// Datagrams in one turn.
const BURST: usize = 64;

impl Attack for Garbage {
    fn turn(&mut self, attacker: &mut Attacker, _now: Time) -> Pace {
        for _ in 0..BURST {
            let rng = attacker.rng();
            let len = usize::try_from(rng.below(1500)).expect("below 1500");
            let mut bytes = vec![0; len];
            rng.fill(&mut bytes);
            // Three of four resemble a packet: short header, Initial of version 1, Handshake.
            let kind = rng.below(4);
            match (kind, bytes.as_mut_slice()) {
                (0, [first, ..]) => *first = 0x40 | (*first & 0x3f),
                (1, [first, version @ .., _]) if version.len() >= 4 => {
                    *first = 0xc0;
                    version[..4].copy_from_slice(&1_u32.to_be_bytes());
                }
                (2, [first, version @ .., _]) if version.len() >= 4 => {
                    *first = 0xe0;
                    version[..4].copy_from_slice(&1_u32.to_be_bytes());
                }
                _ => {}
            }
            attacker.send_raw(0, bytes);
        }
        Pace::Now
    }
}
