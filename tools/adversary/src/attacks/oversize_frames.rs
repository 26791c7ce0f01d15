//! Frames of an extension that are too long, or that never end.

use crate::attack::{Plan, Victim};
use crate::http;

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "oversize-frames",
    labels: &["A126"],
    summary: "frames that an extension claims, with the longest payload unfinished on many requests, \
              then with one above the limit",
    victim: Victim::Server,
    make: || Box::new(oversize_frames()),
};

fn oversize_frames() -> Crowd {
    Crowd::of_clients(2, |connection, progress, _| {
        let claimed = http::CLAIMED_ON_REQUESTS;
        for id in progress.requests(connection, BURST) {
            // The last byte never arrives.
            let mut bytes = http::header(claimed, http::LONGEST_CLAIMED);
            bytes.resize(bytes.len() + UNFINISHED, 0x5a);
            connection.push_bytes(http::stream(id, 0, &bytes, false));
        }
        if progress.bursts == PATIENCE {
            // One byte more than was claimed. The header alone is enough.
            let bytes = http::header(http::CLAIMED_ON_CONTROL, http::LONGEST_CLAIMED + 1);
            progress.push_control(connection, &bytes);
        }
    })
}

/// Requests of one connection in one turn.
const BURST: u64 = 16;

/// Bytes of an unfinished payload.
const UNFINISHED: usize = 1000;

/// Turns of a connection before the frame that is too long.
const PATIENCE: u64 = 100;
