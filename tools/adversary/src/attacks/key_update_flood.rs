//! Key updates as fast as RFC 9001 permits.

use courser_crypto::Space;

use crate::attack::{Expect, Plan, Victim};
use crate::http;

use super::Crowd;

pub(super) const PLAN: Plan = Plan {
    name: "key-update-flood",
    labels: &["A65"],
    summary: "updates its keys as soon as the last update is acknowledged, with new stream data",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(key_update_flood()),
};

fn key_update_flood() -> Crowd {
    Crowd::of_clients(4, |connection, progress, now| {
        // An update before the last one is acknowledged is an error. Each permitted update makes
        // the peer derive keys.
        let acked = connection.seen().largest_acked;
        if progress.bursts == 0 || acked >= Some(progress.offset) {
            connection.update_keys();
            progress.offset = connection.next_number(Space::Application);
        }
        // Every packet carries a new byte, so that each makes progress.
        let frame = http::stream(http::uni_stream(3), progress.bursts, &[UNKNOWN_TYPE], false);
        connection.send_packet(now, Space::Application, vec![frame]);
    })
}

/// A reserved stream type of HTTP/3 (RFC 9114 §6.2.3), whose content is ignored.
const UNKNOWN_TYPE: u8 = 0x21;
