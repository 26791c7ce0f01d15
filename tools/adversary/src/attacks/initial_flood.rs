//! First flights of many clients.

use courser_base::Time;

use crate::attack::{Attack, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::hooks::Honest;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "initial-flood",
    labels: &["A02", "A05"],
    summary: "first flights of handshakes from 64 ports that are never continued",
    victim: Victim::Server,
    make: || Box::new(InitialFlood::default()),
};

#[derive(Default)]
struct InitialFlood {
    started: u64,
}

/// Handshakes started in one turn.
const BURST: u64 = 16;

/// The number of source ports.
const PORTS: u64 = 64;

impl Attack for InitialFlood {
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        for _ in 0..BURST {
            self.started += 1;
            let port = u16::try_from(self.started % PORTS).expect("below 64");
            attacker.connect(port, Box::new(Honest));
        }
        attacker.transmit(now);
        // Responses are ignored, and no second flight is sent.
        for key in attacker.keys() {
            attacker.forget(key);
        }
        Pace::Now
    }
}
