//! Late acknowledgments that never include one old packet.

use std::collections::VecDeque;
use std::time::Duration;

use courser_base::{RangeSet, Time};
use courser_crypto::Space;

use crate::attack::{Expect, Plan, Victim};
use crate::hooks::Hooks;
use crate::http;

use super::{Crowd, crowd};

pub(super) const PLAN: Plan = Plan {
    name: "late-acks",
    labels: &["A25", "A49", "A51"],
    summary: "acknowledges all packets 3 s late except an old one, so that the sent ring stays long",
    victim: Victim::Server,
    expect: Expect::ANY,
    make: || Box::new(late_acks()),
};

fn late_acks() -> Crowd {
    Crowd::of_packets(2, BURST, |_, progress| {
        // Every packet carries a new byte, because repeated bytes would end the connection
        // early. The server discards this stream, whose type is unknown.
        let offset = progress.offset;
        progress.offset += 1;
        vec![http::stream(
            http::uni_stream(UNKNOWN),
            offset,
            &[0x21],
            false,
        )]
    })
    .with_setup(crowd::preface)
    .with_hooks(|| Box::new(LateAcks::new()))
}

/// The index of a stream after those of the preface.
const UNKNOWN: u64 = 3;

/// Packets of one connection in one turn.
const BURST: usize = 8;

/// The age at which packets are acknowledged.
const AGE: Duration = Duration::from_secs(3);

/// The interval at which the received packet numbers are recorded.
const STEP: Duration = Duration::from_millis(50);

/// The number of later packets before the lost one is acknowledged after all.
const OVERTAKEN: u64 = 2000;

/// The phases of the attack.
enum Phase {
    /// Omits the first packet until the peer must declare it lost.
    Lose,
    /// Acknowledges nothing while the peer continues to send. The acknowledgment at the end includes
    /// the lost packet, so that a peer that adapts to reordering raises its packet threshold.
    Silent,
    /// Acknowledges late and omits one packet permanently. The peer does not declare it lost for a
    /// long time and keeps the records of all later packets.
    Late,
}

/// The hooks of the attack.
struct LateAcks {
    phase: Phase,
    first: Option<u64>,
    omitted: u64,
    /// Snapshots of the received packet numbers, oldest first.
    marks: VecDeque<(Time, RangeSet)>,
    due: Option<RangeSet>,
}

impl LateAcks {
    fn new() -> Self {
        Self {
            phase: Phase::Lose,
            first: None,
            omitted: 0,
            marks: VecDeque::new(),
            due: None,
        }
    }

    fn late(&mut self, now: Time, received: &RangeSet) -> Option<RangeSet> {
        if self.marks.back().is_none_or(|(at, _)| *at + STEP <= now) {
            self.marks.push_back((now, received.clone()));
        }
        while let Some((at, _)) = self.marks.front()
            && *at + AGE <= now
        {
            self.due = self.marks.pop_front().map(|(_, ranges)| ranges);
        }
        let mut due = self.due.clone()?;
        due.remove(self.omitted..self.omitted + 1);
        Some(due)
    }
}

impl Hooks for LateAcks {
    fn acknowledge(&mut self, now: Time, space: Space, received: &RangeSet) -> Option<RangeSet> {
        if space != Space::Application {
            return Some(received.clone());
        }
        let (oldest, newest) = (received.min()?, received.max()?);
        // The first packet carries HANDSHAKE_DONE or connection IDs, which must be retransmitted.
        let first = *self.first.get_or_insert(oldest);
        match self.phase {
            Phase::Lose => {
                if newest > first + LOSS_THRESHOLD {
                    self.phase = Phase::Silent;
                }
                let mut others = received.clone();
                others.remove(first..first + 1);
                Some(others)
            }
            Phase::Silent if newest < first + OVERTAKEN => None,
            Phase::Silent => {
                self.phase = Phase::Late;
                self.omitted = newest + 1;
                Some(received.clone())
            }
            Phase::Late => self.late(now, received),
        }
    }
}

/// The number of later acknowledged packets after which a packet is lost (RFC 9002 §6.1.1).
const LOSS_THRESHOLD: u64 = 3;
