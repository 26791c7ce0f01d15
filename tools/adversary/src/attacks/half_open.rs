//! Handshakes that are never completed.

use courser_base::Time;
use courser_crypto::Space;

use crate::attack::{Attack, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::hooks::{Fate, Hooks, PacketToSend};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "half-open",
    labels: &["A05", "A38"],
    summary: "handshakes whose Finished is never sent, kept alive by Initials",
    victim: Victim::Server,
    make: || Box::new(HalfOpen),
};

struct HalfOpen;

/// The number of simultaneous handshakes.
const WAITING: usize = 512;

/// Handshakes started in one turn.
const BURST: usize = 16;

impl Attack for HalfOpen {
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        let keys = attacker.keys();
        for key in &keys {
            if attacker.peek(*key).is_some_and(|it| it.is_closed()) {
                attacker.forget(*key);
            }
        }
        // Removes the oldest. The victim must hold admitted handshakes until they expire.
        let surplus = (keys.len() + BURST).saturating_sub(WAITING);
        for key in keys.iter().take(surplus) {
            attacker.forget(*key);
        }
        for _ in 0..BURST {
            attacker.connect(0, Box::new(NoFinished));
        }
        Pace::At(now + PAUSE)
    }
}

/// The pause between turns, for as many handshakes as one core can create key shares.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// Drops all packets but Initials.
struct NoFinished;

impl Hooks for NoFinished {
    fn on_packet(&mut self, _now: Time, packet: &mut PacketToSend) -> Fate {
        match packet.space {
            Space::Initial => Fate::Send,
            Space::Handshake | Space::Application => Fate::Drop,
        }
    }
}
