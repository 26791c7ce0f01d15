//! HTTP/3 frames of reserved types.

use crate::attack::{Plan, Victim};
use crate::http;

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "unknown-frames",
    labels: &["A81"],
    summary: "frames of reserved types without content on the control stream and before requests",
    victim: Victim::Server,
    make: || Box::new(unknown_frames()),
};

fn unknown_frames() -> Crowd {
    Crowd::of_clients(2, |connection, progress, _| {
        let bytes = http::frame(http::GREASE, &[]).repeat(300);
        progress.push_control(connection, &bytes);
        let request = http::request_stream(0);
        connection.push_bytes(http::stream(request, progress.offset, &bytes, false));
        progress.offset += bytes.len() as u64;
    })
}
