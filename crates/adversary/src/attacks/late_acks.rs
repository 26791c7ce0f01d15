//! A client that acknowledges late, and one old packet never.

use std::collections::VecDeque;
use std::time::Duration;

use courser_base::{RangeSet, Time};
use courser_crypto::Space;

use crate::attack::{Plan, Victim};
use crate::hooks::Hooks;
use crate::http;

use super::{Crowd, crowd};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "late-acks",
    labels: &["A25", "A49", "A51"],
    summary: "acknowledges everything 3 s late but one old packet, so that the sent ring stays long",
    victim: Victim::Server,
    make: || Box::new(late_acks()),
};

fn late_acks() -> Crowd {
    Crowd::new(2, |connection, progress, now| {
        for _ in 0..BURST {
            // A new byte each time: repeated ones would end the connection before the attack does
            // its harm. The server discards this stream, whose type it does not know.
            let offset = progress.offset;
            let frame = http::stream(http::uni_stream(UNKNOWN), offset, &[0x21], false);
            progress.offset += 1;
            connection.send_packet(now, Space::Application, vec![frame]);
        }
    })
    .with_begin(crowd::preface)
    .with_hooks(|| Box::new(LateAcks::new()))
}

/// Index of a stream behind those of the preface.
const UNKNOWN: u64 = 3;

/// Packets of one connection in one turn.
const BURST: usize = 8;

/// Age at which packets are acknowledged.
const AGE: Duration = Duration::from_secs(3);

/// Interval at which the received packet numbers are noted down.
const STEP: Duration = Duration::from_millis(50);

/// Packets by which the lost one is overtaken before it is acknowledged after all.
const OVERTAKEN: u64 = 2000;

/// The steps of the attack.
enum Phase {
    /// Leaves the first packet out until the peer must take it for lost.
    Lose,
    /// Acknowledges nothing while the peer sends on. The acknowledgment at the end covers the lost
    /// packet: a peer that adapts to reordering now waits for as many packets.
    Silent,
    /// Acknowledges late, and leaves out one packet for good. It is not lost for a long time, and
    /// the records of all packets behind it stay.
    Late,
}

struct LateAcks {
    phase: Phase,
    first: Option<u64>,
    left_out: u64,
    /// The packet numbers received at points in time, oldest first.
    marks: VecDeque<(Time, RangeSet)>,
    due: Option<RangeSet>,
}

impl LateAcks {
    fn new() -> Self {
        Self {
            phase: Phase::Lose,
            first: None,
            left_out: 0,
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
        due.remove(self.left_out..self.left_out + 1);
        Some(due)
    }
}

impl Hooks for LateAcks {
    fn acknowledge(&mut self, now: Time, space: Space, received: &RangeSet) -> Option<RangeSet> {
        if space != Space::Application {
            return Some(received.clone());
        }
        let (oldest, newest) = (received.min()?, received.max()?);
        // The first packet carries HANDSHAKE_DONE or connection IDs, so that its loss matters.
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
                self.left_out = newest + 1;
                Some(received.clone())
            }
            Phase::Late => self.late(now, received),
        }
    }
}

/// Newer packets after whose acknowledgment a packet counts as lost (RFC 9002 §6.1.1).
const LOSS_THRESHOLD: u64 = 3;
