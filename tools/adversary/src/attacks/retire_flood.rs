//! Retirement of every connection ID that the peer issues.

use courser_crypto::Space;
use courser_wire::{Frame, RetireConnectionId};

use crate::attack::{Plan, Victim};
use crate::encode;

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "retire-flood",
    labels: &["A30", "A31"],
    summary: "retires each connection ID as soon as it is issued, and does so repeatedly",
    victim: Victim::Server,
    make: || Box::new(retire_flood()),
};

fn retire_flood() -> Crowd {
    Crowd::new(2, |connection, progress, now| {
        // A packet must not retire its own Destination Connection ID, so the newest one is kept.
        let newest = connection
            .seen()
            .issued
            .iter()
            .max_by_key(|(sequence, _)| *sequence);
        let Some((newest, id)) = newest.copied() else {
            return;
        };
        connection.set_peer_id(id);
        let from = progress.offset.min(newest);
        progress.offset = newest;
        for sequence in (from..newest).chain(newest.saturating_sub(20)..newest) {
            let frame = encode(&Frame::RetireConnectionId(RetireConnectionId { sequence }));
            connection.send_packet(now, Space::Application, vec![frame]);
        }
    })
}
