//! A client that acknowledges nothing.

use courser_base::{RangeSet, Time};
use courser_crypto::Space;

use crate::attack::{Plan, Victim};
use crate::hooks::Hooks;
use crate::http;

use super::{Crowd, crowd};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "no-acks",
    labels: &["A24"],
    summary: "ack-eliciting packets at full speed, and responses that are never acknowledged",
    victim: Victim::Server,
    make: || Box::new(no_acks()),
};

fn no_acks() -> Crowd {
    // The first byte of the control stream is repeated, which is ack-eliciting.
    let frame = http::stream(http::uni_stream(0), 0, &[0], false);
    Crowd::of_packets(4, BURST, move |_, _| vec![frame.clone()])
        .with_begin(crowd::preface)
        .with_hooks(|| Box::new(NoAcks))
}

/// Packets of one connection in one turn.
const BURST: usize = 8;

/// Acknowledges only handshake packets.
pub(super) struct NoAcks;

impl Hooks for NoAcks {
    fn acknowledge(&mut self, _now: Time, space: Space, received: &RangeSet) -> Option<RangeSet> {
        (space != Space::Application).then(|| received.clone())
    }
}
