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
    Crowd::new(4, |connection, progress, now| {
        // The first byte of the control stream is repeated, which is ack-eliciting.
        for _ in 0..BURST {
            let frame = http::stream(http::uni_stream(0), 0, &[0], false);
            connection.send_packet(now, Space::Application, vec![frame]);
        }
        progress.offset += 1;
    })
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
