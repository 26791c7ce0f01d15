//! Acknowledgments of packets that have not arrived.

use courser_base::{RangeSet, Time};
use courser_crypto::Space;

use crate::attack::{LARGE, Plan, Victim};
use crate::hooks::Hooks;
use crate::http::{self, Method};

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "optimistic-acks",
    labels: &["A22", "A23"],
    summary: "acknowledges packets ahead of their arrival while it downloads large files",
    victim: Victim::Server,
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
    .with_pause(std::time::Duration::from_millis(5))
}

/// The number of packets acknowledged in advance. Most of them were already sent.
const AHEAD: u64 = 16;

struct OptimisticAcks;

impl Hooks for OptimisticAcks {
    fn acknowledge(&mut self, _now: Time, space: Space, received: &RangeSet) -> Option<RangeSet> {
        if space != Space::Application {
            return Some(received.clone());
        }
        let mut all = RangeSet::new();
        all.insert(0..received.max()? + 1 + AHEAD);
        Some(all)
    }
}
