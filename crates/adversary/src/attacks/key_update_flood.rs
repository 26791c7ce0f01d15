//! Key updates as fast as they can be sent.

use courser_crypto::Space;
use courser_wire::Frame;

use crate::attack::{Plan, Victim};
use crate::encode;

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "key-update-flood",
    labels: &["A65"],
    summary: "updates its keys as soon as the last update is acknowledged",
    victim: Victim::Server,
    make: || Box::new(key_update_flood()),
};

fn key_update_flood() -> Crowd {
    Crowd::new(4, |connection, progress, now| {
        // An update before the last one is acknowledged is an error. Those that are permitted
        // make the peer derive keys each time.
        let acked = connection.seen().largest_acked;
        if progress.bursts == 0 || acked >= Some(progress.offset) {
            connection.update_keys();
            progress.offset = connection.next_number(Space::Application);
        }
        connection.send_packet(now, Space::Application, vec![encode(&Frame::Ping)]);
    })
}
