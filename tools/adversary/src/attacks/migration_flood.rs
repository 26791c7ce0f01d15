//! A client that migrates with every packet.

use courser_base::Time;
use courser_wire::Frame;

use crate::attack::{Attack, Expect, Pace, Plan, Victim};
use crate::attacker::Attacker;
use crate::hooks::{Hooks, Verdict};

pub(super) const PLAN: Plan = Plan {
    name: "migration-flood",
    labels: &["A54", "A55", "A56"],
    summary: "one connection whose packets come from 64 ports in turn; paths are never validated",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(MigrationFlood::default()),
};

#[derive(Default)]
struct MigrationFlood {
    key: Option<u64>,
    moves: u64,
}

/// The number of ports between which the connection migrates.
const PORTS: u64 = 64;

/// Migrations in one turn.
const BURST: usize = 16;

impl Attack for MigrationFlood {
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace {
        let key = match self.key {
            Some(key) if attacker.peek(key).is_some_and(|it| !it.is_closed()) => key,
            _ => {
                let key = attacker.connect(0, Box::new(NoResponses));
                self.key = Some(key);
                key
            }
        };
        if !attacker.peek(key).is_some_and(|it| it.is_confirmed()) {
            return Pace::Now;
        }
        for _ in 0..BURST {
            self.moves += 1;
            let port = u16::try_from(1 + self.moves % PORTS).expect("at most 64");
            attacker.move_to_port(key, port);
            if let Some(connection) = attacker.connection(key) {
                connection.push(&Frame::Ping);
            }
            attacker.transmit(now);
        }
        Pace::Now
    }
}

/// Ignores PATH_CHALLENGE, so that no path is ever validated.
struct NoResponses;

impl Hooks for NoResponses {
    fn on_frame(
        &mut self,
        _now: Time,
        _space: courser_crypto::Space,
        frame: &Frame<'_>,
    ) -> Verdict {
        match frame {
            Frame::PathChallenge(_) => Verdict::Ignore,
            _ => Verdict::Process,
        }
    }
}
