//! Idle connections.

use std::time::Duration;

use courser_wire::Frame;

use super::Crowd;
use crate::attack::{Plan, Victim};

/// The entry of the attack in the list.
pub(super) const PLAN: Plan = Plan {
    name: "idle-storm",
    labels: &["A39", "A101"],
    summary: "2000 connections from one address that send a PING every ten seconds",
    victim: Victim::Server,
    make: || Box::new(idle_storm()),
};

fn idle_storm() -> Crowd {
    Crowd::of_clients(2000, |connection, _, _| connection.push(&Frame::Ping))
        .with_pause(Duration::from_secs(10))
}
