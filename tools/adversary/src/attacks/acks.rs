//! Acknowledgements that are missing, false or useless.

use std::time::Duration;

use courser_base::{RangeSet, Time};
use courser_crypto::Space;
use courser_wire::Frame;

use crate::attack::{Expect, LARGE, Plan, Victim};
use crate::connection::ack;
use crate::encode;
use crate::hooks::Hooks;
use crate::http::{self, Method};

use super::{Crowd, crowd};

pub(super) const NO_ACKS: Plan = Plan {
    name: "no-acks",
    labels: &["A24"],
    summary: "ack-eliciting packets at full speed, and responses that are never acknowledged",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || {
        // The first byte of the control stream is repeated, which is ack-eliciting.
        let frame = http::stream(http::uni_stream(0), 0, &[0], false);
        let crowd = Crowd::of_packets(4, 8, move |_, _| vec![frame.clone()]);
        let crowd = crowd.with_setup(crowd::preface);
        Box::new(crowd.with_hooks(|| Box::new(NoAcks)))
    },
};

pub(super) const MUTE: Plan = Plan {
    name: "mute",
    labels: &["A24"],
    summary: "a small request every half second, whose response is never acknowledged",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(mute()),
};

/// Unlike `no-acks`, each packet makes progress, so that only the missing acknowledgements are wrong.
fn mute() -> Crowd {
    Crowd::of_clients(4, |connection, progress, _| {
        for id in progress.requests(connection, 1) {
            let request = http::request(Method::Get, "/");
            connection.push_bytes(http::stream(id, 0, &request, true));
        }
        connection.push(&Frame::Ping);
    })
    .with_hooks(|| Box::new(NoAcks))
    .with_pause(Duration::from_millis(500))
}

/// Acknowledges only handshake packets.
struct NoAcks;

impl Hooks for NoAcks {
    fn acknowledge(&mut self, _now: Time, space: Space, received: &RangeSet) -> Option<RangeSet> {
        (space != Space::Application).then(|| received.clone())
    }
}

pub(super) const OPTIMISTIC_ACKS: Plan = Plan {
    name: "optimistic-acks",
    labels: &["A22", "A23"],
    summary: "acknowledges packets ahead of their arrival while it downloads large files",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(optimistic_acks()),
};

fn optimistic_acks() -> Crowd {
    Crowd::of_clients(4, |connection, progress, _| {
        for id in progress.requests(connection, 4) {
            let request = http::request(Method::Get, LARGE);
            connection.push_bytes(http::stream(id, 0, &request, true));
        }
    })
    .with_hooks(|| Box::new(OptimisticAcks))
    .with_pause(Duration::from_millis(5))
}

/// Acknowledges 16 packets in advance, most of which the peer has already sent.
struct OptimisticAcks;

impl Hooks for OptimisticAcks {
    fn acknowledge(&mut self, _now: Time, space: Space, received: &RangeSet) -> Option<RangeSet> {
        if space != Space::Application {
            return Some(received.clone());
        }
        let mut all = RangeSet::new();
        all.insert(0..received.max()? + 1 + 16);
        Some(all)
    }
}

pub(super) const ACK_STORM: Plan = Plan {
    name: "ack-storm",
    labels: &["A22", "A25"],
    summary: "packets full of ACK frames whose ranges omit every second packet",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(ack_storm()),
};

fn ack_storm() -> Crowd {
    const RANGES_PER_FRAME: usize = 500;
    const BYTES_PER_PACKET: usize = 1100;
    Crowd::new(2, |connection, progress, now| {
        let Some(largest) = connection.largest_received() else {
            return;
        };
        let mut ranges = RangeSet::new();
        for number in (0..=largest).rev().step_by(2).take(RANGES_PER_FRAME) {
            ranges.insert_one(number);
        }
        let frame = ack(&ranges).unwrap_or_default();
        let fitting = (BYTES_PER_PACKET / frame.len().max(1)).max(1);
        for packet in 0..16 {
            let mut frames = vec![frame.clone(); fitting];
            // An occasional PING makes the victim send packets that can be acknowledged.
            if packet == 0 && progress.bursts % 4 == 0 {
                frames.push(encode(&Frame::Ping));
            }
            connection.send_packet(now, Space::Application, frames);
        }
    })
}
