//! Endless repetitions of the same stream byte.

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
    let frame = http::stream(http::uni_stream(0), 0, &[0], false);
    Crowd::of_packets(2, BURST, move |_, _| vec![frame.repeat(100)]).with_begin(crowd::preface)
}

/// Packets of one connection in one turn.
const BURST: usize = 16;
