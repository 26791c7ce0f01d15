//! Idle connections.

use std::time::Duration;

use courser_wire::Frame;

use super::{Crowd, crowd};
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
    let ping = |connection: &mut crate::Connection, _: &mut super::Progress, _| {
        connection.push(&Frame::Ping);
    };
    Crowd::new(2000, ping)
        .with_begin(crowd::preface)
        .with_pause(Duration::from_secs(10))
}
