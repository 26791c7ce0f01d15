//! Clients that complete a handshake and disappear.

use courser_base::Time;

use crate::attack::{Attack, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::hooks::Honest;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "handshake-flood",
    labels: &["A02", "A101"],
    summary: "completes handshakes continuously and never closes the connections",
    victim: Victim::Server,
    make: || Box::new(HandshakeFlood),
};

struct HandshakeFlood;

/// The number of simultaneous handshakes.
const AT_ONCE: usize = 32;

impl Attack for HandshakeFlood {
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        let mut in_progress = 0;
        for key in attacker.keys() {
            let is_over = attacker
                .peek(key)
                .is_none_or(|it| it.is_confirmed() || it.is_closed());
            if is_over {
                attacker.forget(key);
            } else {
                in_progress += 1;
            }
        }
        for _ in in_progress..AT_ONCE {
            attacker.connect(0, Box::new(Honest));
        }
        Pace::At(now + std::time::Duration::from_millis(1))
    }
}
