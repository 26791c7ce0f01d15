//! A client that acknowledges late, and one old packet never.

use std::time::Duration;

use courser_base::{RangeSet, Time};
use courser_crypto::Space;

use crate::attack::{Plan, Victim};
use crate::hooks::Hooks;
use crate::http;

use super::Crowd;

/// How the attack is listed.
pub(super) const PLAN: Plan = Plan {
    name: "late-acks",
    labels: &["A25", "A49", "A51"],
    summary: "acknowledges everything 3 s late but one old packet, so that the sent ring stays long",
    victim: Victim::Server,
    make: || Box::new(late_acks()),
};

fn late_acks() -> Crowd {
    Crowd::new(2, |connection, _, now| {
        for _ in 0..BURST {
            let frame = http::stream(http::uni_stream(0), 0, &[0], false);
            connection.send_packet(now, Space::Application, vec![frame]);
        }
    })
    .with_hooks(|| Box::new(LateAcks::default()))
}

/// Packets of one connection in one turn.
const BURST: usize = 8;

/// Age at which packets are acknowledged.
const AGE: Duration = Duration::from_secs(3);

/// The packet that is left out after it was acknowledged in passing.
const LEFT_OUT: u64 = 5;

#[derive(Default)]
struct LateAcks {
    /// The largest packet number at points in time, oldest first.
    marks: std::collections::VecDeque<(Time, u64)>,
    largest: Option<u64>,
}

impl Hooks for LateAcks {
    fn acknowledge(&mut self, now: Time, space: Space, received: &RangeSet) -> Option<RangeSet> {
        if space != Space::Application {
            return Some(received.clone());
        }
        let newest = received.max()?;
        if self.marks.back().is_none_or(|(at, _)| *at + STEP <= now) {
            self.marks.push_back((now, newest));
        }
        while let Some((at, largest)) = self.marks.front()
            && *at + AGE <= now
        {
            self.largest = Some(*largest);
            self.marks.pop_front();
        }
        let largest = self.largest?;
        let mut all = RangeSet::new();
        all.insert(0..largest + 1);
        all.remove(LEFT_OUT..LEFT_OUT + 1);
        Some(all)
    }
}

/// How often the largest packet number is noted down.
const STEP: Duration = Duration::from_millis(50);
