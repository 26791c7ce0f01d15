//! Endless PING frames.

use crate::attack::{Plan, Victim};

use super::Crowd;

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "ping-flood",
    labels: &["A33"],
    summary: "packets with one PING frame each",
    victim: Victim::Server,
    make: || Box::new(Crowd::of_packets(2, BURST, |_, _| vec![vec![PING]])),
};

/// Packets of one connection in one turn.
const BURST: usize = 32;

/// A PING frame, which consists only of its type.
const PING: u8 = 0x01;
