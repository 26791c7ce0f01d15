//! Datagrams of WebTransport sessions that are unknown, over, or slow.

use crate::attack::{Expect, Plan, Victim};
use crate::http;
use crate::sessions;

use super::session_streams::{clients, open};

pub(super) const PLAN: Plan = Plan {
    name: "session-datagrams",
    labels: &["A250", "A387"],
    summary: "datagrams of a session that is open, of one that has ended, and of one that never comes",
    victim: Victim::Sessions,
    expect: Expect::TOLERATED.statuses(&[200]),
    make: || {
        Box::new(clients(2, |connection, progress| {
            match progress.streams {
                0 => return open(connection, progress, true),
                1 => return open(connection, progress, false),
                _ => {}
            }
            for number in 0..96 {
                // The third one is within the limit of the server.
                let id = http::request_stream(number % 3);
                connection.push_bytes(sessions::datagram(id, &[0x5a; 1000]));
            }
        }))
    },
};
