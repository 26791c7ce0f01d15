//! Streams of an extension that the application does not accept.

use courser_wire::{Direction, StreamId};

use crate::attack::{Plan, Victim};
use crate::connection::Connection;
use crate::http;

use super::{Crowd, Progress, crowd};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "claimed-streams",
    labels: &["A124"],
    summary: "streams of types that an extension claims, with some content and an end",
    victim: Victim::Server,
    make: || Box::new(claimed_streams()),
};

fn claimed_streams() -> Crowd {
    Crowd::new(2, |connection, progress, _| {
        for id in progress.requests(connection, BURST) {
            open(connection, id);
        }
        // The first two are those of HTTP/3 itself.
        for _ in progress.offset..(progress.offset + BURST).min(UNIDIRECTIONAL) {
            let id = http::uni_stream(2 + progress.offset);
            progress.offset += 1;
            open(connection, id);
        }
    })
    .with_begin(begin)
}

fn begin(connection: &mut Connection, progress: &mut Progress) {
    crowd::preface(connection, progress);
    progress.offset = 0;
}

/// Opens a stream of a claimed type.
fn open(connection: &mut Connection, id: StreamId) {
    let stream_type = match id.direction() {
        Direction::Bidirectional => http::CLAIMED_BIDIRECTIONAL,
        Direction::Unidirectional => http::CLAIMED_UNIDIRECTIONAL,
    };
    let mut bytes = Vec::new();
    crate::put_varint(&mut bytes, stream_type);
    bytes.extend([0x5a; CONTENT]);
    // An end, so that a refused stream is over and permits another one.
    connection.push_bytes(http::stream(id, 0, &bytes, true));
}

/// Streams of each direction that one connection opens in one turn.
const BURST: u64 = 32;

/// Unidirectional streams of one connection. A server permits at least so many.
const UNIDIRECTIONAL: u64 = 90;

/// Bytes behind the type of a stream.
const CONTENT: usize = 500;
